// Every data type, waiting, Pub/Sub and client-side caching through node-redis and ioredis, and Express sessions.
// usage: node node_types.mjs PORT FOLDER_OF_NODE_MODULES
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'

const port = Number(process.argv[2])
const require = createRequire(path.join(process.argv[3], 'index.js'))
const { createClient, BasicClientSideCache } = require('redis')
const Redis = require('ioredis')
const load = name => import(pathToFileURL(require.resolve(name)))

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

async function until (holds) {
  for (let tries = 0; tries < 200 && !(await holds()); tries++) await pause(25)
  assert.ok(await holds())
}

async function connect (options) {
  const client = createClient({ socket: { host: '127.0.0.1', port }, ...options })
  client.on('error', error => console.log(error.message))
  await client.connect()
  return client
}

const plain = object => ({ ...object })

for (const RESP of [2, 3]) {
  const client = await connect({ RESP })
  await client.flushAll()
  const named = (name, body) => test(`node-redis RESP${RESP} ${name}`, body)

  await named('lists', async () => {
    assert.equal(await client.rPush('l', ['a', 'b', 'c']), 3)
    assert.deepEqual(await client.lRange('l', 0, -1), ['a', 'b', 'c'])
    assert.equal(await client.lInsert('l', 'BEFORE', 'b', 'x'), 4)
    assert.equal(await client.lPos('l', 'b'), 2)
    assert.deepEqual(await client.lmPop('l', 'LEFT', { COUNT: 2 }), ['l', ['a', 'x']])
    assert.equal(await client.lMove('l', 'other', 'RIGHT', 'LEFT'), 'c')
    await assert.rejects(client.hGet('l', 'f'), /WRONGTYPE/)
  })

  await named('hashes', async () => {
    assert.equal(await client.hSet('h', { f: 'v', n: 1 }), 2)
    assert.deepEqual(plain(await client.hGetAll('h')), { f: 'v', n: '1' })
    assert.equal(await client.hIncrBy('h', 'n', 4), 5)
    assert.deepEqual(await client.hmGet('h', ['f', 'missing']), ['v', null])
    assert.deepEqual(await client.hExpire('h', 'f', 100), [1])
    const [left] = await client.hTTL('h', 'f')
    assert.ok(left > 90 && left <= 100)
    const fields = []
    for await (const entries of client.hScanIterator('h')) fields.push(...entries.map(entry => entry.field))
    assert.deepEqual(fields.sort(), ['f', 'n'])
  })

  await named('sets', async () => {
    assert.equal(await client.sAdd('s', ['1', '2', '3']), 3)
    assert.equal(await client.sAdd('t', ['2', '3', 'x']), 3)
    assert.deepEqual(new Set(await client.sInter(['s', 't'])), new Set(['2', '3']))
    assert.equal(await client.sInterCard(['s', 't'], { LIMIT: 1 }), 1)
    assert.deepEqual(await client.smIsMember('s', ['1', 'x']), [1, 0])
    assert.equal(await client.sUnionStore('u', ['s', 't']), 4)
  })

  await named('sorted sets', async () => {
    assert.equal(await client.zAdd('z', [{ score: 1, value: 'a' }, { score: 2.5, value: 'b' }, { score: Infinity, value: 'c' }]), 3)
    assert.deepEqual((await client.zRangeWithScores('z', 0, -1)).map(plain),
      [{ value: 'a', score: 1 }, { value: 'b', score: 2.5 }, { value: 'c', score: Infinity }])
    assert.equal(await client.zScore('z', 'b'), 2.5)
    assert.equal(await client.zRank('z', 'c'), 2)
    assert.deepEqual(await client.zRange('z', '(1', '+inf', { BY: 'SCORE' }), ['b', 'c'])
    assert.deepEqual(plain(await client.zPopMin('z')), { value: 'a', score: 1 })
    assert.equal(await client.zUnionStore('y', ['z', 'z']), 2)
  })

  await named('places and bits', async () => {
    await client.geoAdd('g', [{ longitude: 13.361389, latitude: 38.115556, member: 'Palermo' },
      { longitude: 15.087269, latitude: 37.502669, member: 'Catania' }])
    assert.ok(Math.abs(await client.geoDist('g', 'Palermo', 'Catania', 'km') - 166.2742) < 0.01)
    assert.deepEqual(await client.geoSearch('g', { longitude: 15, latitude: 37 }, { radius: 100, unit: 'km' }), ['Catania'])
    assert.equal(await client.setBit('bits', 7, 1), 0)
    assert.equal(await client.bitCount('bits'), 1)
    assert.equal(await client.pfAdd('p', ['a', 'b', 'c']), 1)
    assert.equal(await client.pfCount('p'), 3)
  })

  await named('streams', async () => {
    const id = await client.xAdd('st', '*', { f: 'v' })
    await client.xGroupCreate('st', 'group', '0')
    const [stream] = await client.xReadGroup('group', 'one', { key: 'st', id: '>' }, { COUNT: 10 })
    assert.equal(stream.name, 'st')
    assert.equal(stream.messages[0].id, id)
    assert.deepEqual(plain(stream.messages[0].message), { f: 'v' })
    assert.equal((await client.xPending('st', 'group')).pending, 1)
    assert.equal(await client.xAck('st', 'group', id), 1)
    assert.equal((await client.xInfoStream('st')).length, 1)
    assert.equal((await client.xRange('st', '-', '+')).length, 1)
  })

  await named('waiting', async () => {
    const waiting = await connect({ RESP })
    const popped = waiting.blPop('q', 10)
    const lowest = (await connect({ RESP }))
    const smallest = lowest.bzPopMin('zq', 10)
    const reader = await connect({ RESP })
    const read = reader.xRead({ key: 'stq', id: '$' }, { BLOCK: 10000 })
    await until(async () => /blocked_clients:3/.test(await client.info('clients')))
    await client.rPush('q', 'x')
    await client.zAdd('zq', { score: 3, value: 'm' })
    await client.xAdd('stq', '*', { a: 'b' })
    assert.deepEqual(plain(await popped), { key: 'q', element: 'x' })
    assert.deepEqual(plain(await smallest), { key: 'zq', value: 'm', score: 3 })
    assert.equal((await read)[0].messages.length, 1)
    assert.equal(await waiting.blPop('q', 0.05), null)
    for (const one of [waiting, lowest, reader]) one.destroy()
  })

  await named('Pub/Sub', async () => {
    const subscriber = await connect({ RESP })
    const heard = []
    await subscriber.subscribe('news', message => heard.push(message))
    await subscriber.pSubscribe('ne*', (message, channel) => heard.push(`${channel}:${message}`))
    await subscriber.sSubscribe('shard', message => heard.push(message))
    assert.equal(await client.publish('news', 'one'), 2)
    assert.equal(await client.sPublish('shard', 'two'), 1)
    await until(() => heard.length === 3)
    assert.deepEqual(heard.sort(), ['news:one', 'one', 'two'])
    assert.deepEqual(await client.pubSubChannels(), ['news'])
    await subscriber.unsubscribe('news')
    await subscriber.close()
  })

  await client.close()
}

await test('node-redis client-side caching', async () => {
  const cache = new BasicClientSideCache({ ttl: 0, maxEntries: 100 })
  const cached = await connect({ RESP: 3, clientSideCache: cache })
  const writer = await connect({ RESP: 3 })
  await writer.set('cached', '1')
  await writer.hSet('cached-hash', 'f', '1')
  for (let times = 0; times < 3; times++) {
    assert.equal(await cached.get('cached'), '1')
    assert.equal(await cached.hGet('cached-hash', 'f'), '1')
  }
  assert.equal(cache.stats().hitCount, 4)
  await writer.set('cached', '2')
  await writer.hSet('cached-hash', 'f', '2')
  await until(async () => await cached.get('cached') === '2' && await cached.hGet('cached-hash', 'f') === '2')
  await cached.close()
  await writer.close()
})

await test('Express sessions of connect-redis', async () => {
  const { RedisStore } = await load('connect-redis')
  const client = await connect({})
  const store = new RedisStore({ client, prefix: 'session:' })
  const session = { cookie: { originalMaxAge: 100000, expires: new Date(Date.now() + 100000) }, user: 'a' }
  await store.set('one', session)
  await store.set('two', session)
  assert.equal((await store.get('one')).user, 'a')
  assert.equal(await store.length(), 2)
  assert.deepEqual((await store.ids()).sort(), ['one', 'two'])
  await store.touch('one', session)
  assert.ok((await client.ttl('session:one')) > 90)
  await store.destroy('one')
  assert.equal((await store.all()).length, 1)
  await store.clear()
  assert.equal(await store.length(), 0)
  await client.close()
})

const io = new Redis({ port, host: '127.0.0.1' })
await io.flushall()

await test('ioredis data types', async () => {
  assert.equal(await io.rpush('l', 'a', 'b'), 2)
  assert.deepEqual(await io.lrange('l', 0, -1), ['a', 'b'])
  assert.equal(await io.hset('h', { f: 'v', g: 'w' }), 2)
  assert.deepEqual(await io.hgetall('h'), { f: 'v', g: 'w' })
  assert.equal(await io.sadd('s', 'x', 'y'), 2)
  assert.deepEqual((await io.smembers('s')).sort(), ['x', 'y'])
  assert.equal(await io.zadd('z', 1, 'a', 2, 'b'), 2)
  assert.deepEqual(await io.zrange('z', 0, -1, 'WITHSCORES'), ['a', '1', 'b', '2'])
  const members = []
  for await (const part of io.zscanStream('z')) members.push(...part)
  assert.deepEqual(members, ['a', '1', 'b', '2'])
  assert.deepEqual(await io.sort('l', 'ALPHA', 'DESC'), ['b', 'a'])
})

await test('ioredis streams', async () => {
  const id = await io.xadd('st', '*', 'f', 'v')
  assert.deepEqual(await io.xrange('st', '-', '+'), [[id, ['f', 'v']]])
  await io.xgroup('CREATE', 'st', 'group', '0')
  assert.deepEqual(await io.xreadgroup('GROUP', 'group', 'one', 'STREAMS', 'st', '>'), [['st', [[id, ['f', 'v']]]]])
  assert.equal(await io.xack('st', 'group', id), 1)
})

await test('ioredis waiting and Pub/Sub', async () => {
  const waiting = io.duplicate()
  const popped = waiting.brpop('q', 10)
  await until(async () => /blocked_clients:1/.test(await io.info('clients')))
  await io.lpush('q', 'x')
  assert.deepEqual(await popped, ['q', 'x'])
  const subscriber = io.duplicate()
  const heard = []
  subscriber.on('message', (channel, message) => heard.push([channel, message]))
  subscriber.on('pmessage', (pattern, channel, message) => heard.push([pattern, channel, message]))
  assert.equal(await subscriber.subscribe('news', 'more'), 2)
  assert.equal(await subscriber.psubscribe('n*'), 3)
  await io.publish('news', 'one')
  await until(() => heard.length === 2)
  assert.deepEqual(heard, [['news', 'one'], ['n*', 'news', 'one']])
  await waiting.quit()
  await subscriber.quit()
})

await io.quit()
console.log(`${passed} passed, ${failed} failed`)
process.exit(failed ? 1 : 0)
