// node-redis and ioredis as applications use them. usage: node node_clients.mjs PORT FOLDER_OF_NODE_MODULES
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import path from 'node:path'

const port = Number(process.argv[2])
const require = createRequire(path.join(process.argv[3], 'index.js'))
const { createClient, WatchError } = require('redis')
const Redis = require('ioredis')

let passed = 0
let failed = 0

async function test (name, body) {
  try {
    await body()
    passed++
  } catch (error) {
    failed++
    console.log(`${name}: ${error.stack}`)
  }
}

for (const RESP of [2, 3]) {
  const client = createClient({ socket: { host: '127.0.0.1', port }, RESP })
  client.on('error', error => console.log(error.message))
  await client.connect()
  await client.flushAll()

  await test(`node-redis RESP${RESP} strings`, async () => {
    assert.equal(await client.set('a', '1'), 'OK')
    assert.equal(await client.get('a'), '1')
    assert.equal(await client.get('missing'), null)
    assert.equal(await client.incrBy('a', 41), 42)
    assert.equal(await client.append('a', 'x'), 3)
    assert.deepEqual(await client.mGet(['a', 'missing']), ['42x', null])
    assert.equal(await client.getDel('a'), '42x')
    assert.equal(await client.set('b', '1', { condition: 'NX' }), 'OK')
    assert.equal(await client.set('b', '2', { condition: 'NX' }), null)
  })

  await test(`node-redis RESP${RESP} expiry`, async () => {
    await client.set('a', '1', { expiration: { type: 'EX', value: 100 } })
    assert.ok((await client.ttl('a')) > 97)
    assert.equal(await client.persist('a'), RESP === 2 ? 1 : 1)
    assert.equal(await client.ttl('a'), -1)
    await client.expireAt('a', 99999999999)
    assert.equal(await client.expireTime('a'), 99999999999)
  })

  await test(`node-redis RESP${RESP} transactions`, async () => {
    assert.deepEqual(await client.multi().set('n', '1').incr('n').get('n').exec(), ['OK', 2, '2'])
    const isolated = createClient({ socket: { host: '127.0.0.1', port }, RESP })
    await isolated.connect()
    await isolated.watch('n')
    await client.set('n', '5')
    await assert.rejects(isolated.multi().incr('n').exec(), error => error instanceof WatchError)
    await isolated.close()
    assert.equal(await client.get('n'), '5')
  })

  await test(`node-redis RESP${RESP} scan and pipeline`, async () => {
    await Promise.all(Array.from({ length: 300 }, (_, n) => client.set(`k:${n}`, n.toString())))
    const seen = new Set()
    for await (const keys of client.scanIterator({ MATCH: 'k:*', COUNT: 50 })) {
      for (const key of keys) seen.add(key)
    }
    assert.equal(seen.size, 300)
    assert.ok((await client.info('server')).includes('redis_version'))
    await assert.rejects(client.sendCommand(['NOSUCH']), /unknown command/)
  })

  await client.close()
}

const io = new Redis({ port, host: '127.0.0.1', keyPrefix: 'io:' })

await test('ioredis strings and pipeline', async () => {
  assert.equal(await io.set('a', '1', 'EX', 100), 'OK')
  const replies = await io.pipeline().incr('a').get('a').exec()
  assert.deepEqual(replies, [[null, 2], [null, '2']])
  assert.deepEqual(await io.multi().incr('a').get('a').exec(), [[null, 3], [null, '3']])
  assert.ok((await io.getBuffer('a')).equals(Buffer.from('3')))
  assert.equal(await io.del('a'), 1)
})

await test('ioredis stream of keys', async () => {
  const keys = []
  for await (const part of io.scanStream({ match: 'k:*' })) keys.push(...part)
  assert.equal(new Set(keys).size, 300)
})

await io.quit()
console.log(`${passed} passed, ${failed} failed`)
process.exit(failed ? 1 : 0)
