// A worker process of bullmq.mjs: usage bullmq_worker.mjs QUEUES_AND_THEIR_OPTIONS_AS_JSON. What a job does stands in its name.
import { connection, require, sleep } from './work.mjs'

const { DelayedError, UnrecoverableError, Worker } = require('bullmq')
const Redis = require('ioredis')
const queues = JSON.parse(process.argv[2])
const store = new Redis({ ...connection, db: 2 })

const jobs = {
  add: ({ data }) => data.left + data.right,
  note: async ({ data }) => { await store.rpush(data.key, JSON.stringify(data.value)) },
  sleep: async ({ data }) => { await sleep(data.for); return data.for },
  fail: ({ data }) => { throw new Error(data.text) },
  'fail for good': ({ data }) => { throw new UnrecoverableError(data.text) },
  'succeed at third': async job => {
    if (job.attemptsMade < 2) throw new Error(`attempt ${job.attemptsMade}`)
    return job.attemptsMade
  },
  progress: async job => {
    for (const done of [10, 50, 100]) await job.updateProgress(done)
    await job.log('a line')
    await job.updateData({ ...job.data, changed: true })
    return 'done'
  },
  parent: async job => Object.values(await job.getChildrenValues()).reduce((sum, value) => sum + value, 0),
  'once later': async (job, token) => {
    if (job.data.again) return 'later'
    await job.updateData({ again: true })
    await job.moveToDelayed(Date.now() + 300, token)
    throw new DelayedError()
  },
  hang: async ({ data }) => {
    if (await store.incr(data.key) === 1) await sleep(60000)
    return 'done by another'
  }
}

const workers = Object.entries(queues).map(([queue, options]) => {
  const worker = new Worker(queue, (job, token) => jobs[job.name](job, token), { connection, ...options })
  worker.on('error', error => console.log(`worker of ${queue}: ${error.stack}`))
  return worker
})
await Promise.all(workers.map(worker => worker.waitUntilReady()))
console.log('ready')
