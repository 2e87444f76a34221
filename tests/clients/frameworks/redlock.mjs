// redlock: one lock over three databases, by its own scripts; several holders want it at once.
import assert from 'node:assert/strict'
import { connection, end, require, sleep, test } from './work.mjs'

const Redis = require('ioredis')
const Redlock = require('redlock')
const clients = [3, 4, 5].map(db => new Redis({ ...connection, db }))
const store = new Redis({ ...connection, db: 2 })

await test('held, extended, let go', async () => {
  const locks = new Redlock(clients, { retryCount: 0 })
  const lock = await locks.lock('a', 1000)
  await assert.rejects(locks.lock('a', 1000), { name: 'LockError' })
  await sleep(500)
  await lock.extend(1500)
  await sleep(800)
  await assert.rejects(locks.lock('a', 1000), { name: 'LockError' })
  await lock.unlock()
  await assert.rejects(lock.unlock(), { name: 'LockError' })
  await (await locks.lock('a', 1000)).unlock()
})

await test('several resources by one lock', async () => {
  const locks = new Redlock(clients, { retryCount: 0 })
  const lock = await locks.lock(['b', 'c'], 1000)
  await assert.rejects(locks.lock('c', 1000), { name: 'LockError' })
  await lock.unlock()
  await (await locks.lock('c', 1000)).unlock()
})

await test('lets go by itself', async () => {
  const locks = new Redlock(clients, { retryCount: 0 })
  const lock = await locks.lock('d', 200)
  await sleep(300)
  await (await locks.lock('d', 1000)).unlock()
  await assert.rejects(lock.extend(100), { name: 'LockError' })
})

await test('holders exclude each other', async () => {
  const count = async () => {
    const locks = new Redlock([3, 4, 5].map(db => new Redis({ ...connection, db })), { retryCount: -1, retryDelay: 10, retryJitter: 20 })
    for (let n = 0; n < 10; n++) {
      const lock = await locks.lock('e', 5000)
      const value = Number(await store.get('e'))
      await sleep(2)
      await store.set('e', value + 1)
      await lock.unlock()
    }
    await locks.quit()
  }
  await Promise.all(Array.from({ length: 5 }, count))
  assert.equal(await store.get('e'), '50')
})

end()
