// BullMQ: its queues live in some fifty scripts, with up to fourteen keys and many that they do not declare. Workers are processes.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { connection, end, require, sleep, test, until } from './work.mjs'

const { FlowProducer, Queue, QueueEvents } = require('bullmq')
const Redis = require('ioredis')
const store = new Redis({ ...connection, db: 2 })
const script = fileURLToPath(new URL('./bullmq_worker.mjs', import.meta.url))
const noted = async key => (await store.lrange(key, 0, -1)).map(JSON.parse)

const first = {}
const second = {}

// A worker process for all of these queues, as starting one costs more than most of the tests.
function start (queues) {
  const worker = spawn(process.execPath, [script, JSON.stringify(queues)], { stdio: ['ignore', 'pipe', 'inherit'] })
  worker.ready = new Promise((resolve, reject) => {
    worker.stdout.on('data', text => text.toString().includes('ready') ? resolve() : process.stdout.write(text))
    worker.on('exit', () => reject(new Error('the worker ended')))
  })
  worker.ready.catch(() => {})
  return worker
}

// A test with a queue of its own and its events. `options` are its worker's in the first process, and in the second those at [1].
const tests = []
function withQueue (name, options, body) {
  const queueName = name.replaceAll(' ', '-')
  if (options[0]) first[queueName] = options[0]
  if (options[1]) second[queueName] = options[1]
  tests.push(() => test(name, async () => {
    const queue = new Queue(queueName, { connection })
    // From the beginning: what is told before it listens is told all the same.
    const events = new QueueEvents(queueName, { connection, lastEventId: '0-0' })
    await events.waitUntilReady()
    await body({ queue, events })
    await events.close()
    await queue.close()
  }))
}

withQueue('results', [{ concurrency: 10 }, { concurrency: 10 }], async ({ queue, events }) => {
  const jobs = await queue.addBulk(Array.from({ length: 200 }, (_, n) => ({ name: 'add', data: { left: n, right: n } })))
  assert.deepEqual(await Promise.all(jobs.map(job => job.waitUntilFinished(events))), jobs.map((_, n) => 2 * n))
  assert.deepEqual(await queue.getJobCounts('wait', 'active', 'completed', 'failed'), { wait: 0, active: 0, completed: 200, failed: 0 })
  assert.equal((await queue.getJobs(['completed'], 0, 9)).length, 10)
  assert.equal((await queue.clean(0, 50, 'completed')).length, 50)
  assert.equal(await queue.getCompletedCount(), 150)
  assert.equal((await queue.getWorkers()).length, 2)
  await queue.obliterate({ force: true })
  assert.equal(await queue.getCompletedCount(), 0)
})

withQueue('failures and retries', [{ concurrency: 5 }], async ({ queue, events }) => {
  const failing = await queue.add('fail', { text: 'told' })
  await assert.rejects(failing.waitUntilFinished(events), /told/)
  assert.equal(await failing.getState(), 'failed')
  const third = await queue.add('succeed at third', {}, { attempts: 3, backoff: { type: 'exponential', delay: 50 } })
  assert.equal(await third.waitUntilFinished(events), 2)
  const unrecoverable = await queue.add('fail for good', { text: 'no more' }, { attempts: 5 })
  await assert.rejects(unrecoverable.waitUntilFinished(events), /no more/)
  assert.equal((await queue.getJob(unrecoverable.id)).attemptsMade, 1)
  await (await queue.getJob(failing.id)).retry()
  await until(async () => (await queue.getJob(failing.id)).attemptsMade === 2)
  assert.equal(await queue.getFailedCount(), 2)
})

withQueue('delayed', [{}], async ({ queue, events }) => {
  const begin = Date.now()
  const promoted = await queue.add('add', { left: 3, right: 4 }, { delay: 60000 })
  assert.equal(await queue.getDelayedCount(), 1)
  const late = await queue.add('add', { left: 1, right: 2 }, { delay: 1000 })
  await promoted.promote()
  assert.equal(await promoted.waitUntilFinished(events), 7)
  assert.equal(await late.waitUntilFinished(events), 3)
  assert.ok(Date.now() - begin >= 990)
  assert.equal(await (await queue.add('once later', {})).waitUntilFinished(events), 'later')
})

withQueue('priorities', [{}], async ({ queue }) => {
  await queue.pause()
  for (const priority of [5, 1, 9, 1, 5, undefined]) {
    await queue.add('note', { key: 'priorities', value: priority ?? 0 }, { priority })
  }
  await queue.add('note', { key: 'priorities', value: 'front' }, { lifo: true })
  const job = await queue.add('note', { key: 'priorities', value: 'raised' }, { priority: 9 })
  await job.changePriority({ priority: 2 })
  assert.deepEqual(await queue.getCountsPerPriority([0, 1, 5, 9]), { 0: 2, 1: 2, 5: 2, 9: 1 })
  await queue.resume()
  await until(async () => (await noted('priorities')).length === 8)
  assert.deepEqual(await noted('priorities'), ['front', 0, 1, 1, 'raised', 5, 5, 9])
})

withQueue('flows', [{ concurrency: 5 }, { concurrency: 5 }], async ({ queue, events }) => {
  const flows = new FlowProducer({ connection })
  const child = (left, more = {}) => ({ name: 'add', queueName: queue.name, data: { left, right: 0 }, ...more })
  const tree = await flows.add({
    name: 'parent',
    queueName: queue.name,
    children: [
      { name: 'parent', queueName: queue.name, children: [child(1), child(2), child(3, { opts: { delay: 300 } })] },
      child(10)
    ]
  })
  assert.equal(await tree.job.waitUntilFinished(events), 16)
  const failing = await flows.add({
    name: 'parent',
    queueName: queue.name,
    children: [{ name: 'fail', queueName: queue.name, data: { text: 'child' }, opts: { failParentOnFailure: true } }]
  })
  await assert.rejects(failing.job.waitUntilFinished(events), /child/)
  assert.equal((await flows.getFlow({ id: tree.job.id, queueName: queue.name })).children.length, 2)
  await flows.close()
})

withQueue('rate limits', [{ limiter: { max: 2, duration: 500 }, concurrency: 10 }], async ({ queue, events }) => {
  const begin = Date.now()
  const jobs = await queue.addBulk(Array.from({ length: 6 }, () => ({ name: 'add', data: { left: 1, right: 1 } })))
  await Promise.all(jobs.map(job => job.waitUntilFinished(events)))
  assert.ok(Date.now() - begin >= 950, `in ${Date.now() - begin} ms`)
  const next = Date.now()
  await queue.rateLimit(2000)
  assert.ok(await queue.getRateLimitTtl() > 0)
  await (await queue.add('add', { left: 1, right: 1 })).waitUntilFinished(events)
  assert.ok(Date.now() - next >= 1900, `in ${Date.now() - next} ms`)
})

withQueue('repeatable', [{}], async ({ queue }) => {
  await queue.upsertJobScheduler('every', { every: 300 }, { name: 'note', data: { key: 'every', value: 'tick' } })
  await queue.upsertJobScheduler('cron', { pattern: '* * * * * *', limit: 2 }, { name: 'note', data: { key: 'cron', value: 'tick' } })
  assert.equal(await queue.getJobSchedulersCount(), 2)
  await until(async () => (await store.llen('every')) >= 4)
  await until(async () => (await store.llen('cron')) === 2)
  assert.ok(await queue.removeJobScheduler('every'))
  await sleep(700)
  const count = await store.llen('every')
  await sleep(700)
  assert.equal(await store.llen('every'), count)
  assert.equal(await store.llen('cron'), 2)
})

withQueue('stalled jobs', [], async ({ queue, events }) => {
  const queues = { [queue.name]: { lockDuration: 1000, stalledInterval: 500 } }
  const doomed = start(queues)
  const job = await queue.add('hang', { key: 'stalled' })
  await until(async () => (await store.get('stalled')) === '1')
  const stalled = new Promise(resolve => events.on('stalled', resolve))
  doomed.kill('SIGKILL')
  start(queues)
  assert.equal((await stalled).jobId, job.id)
  assert.equal(await job.waitUntilFinished(events), 'done by another')
  assert.equal(await store.get('stalled'), '2')
})

withQueue('progress and events', [{}], async ({ queue, events }) => {
  const seen = []
  for (const event of ['added', 'waiting', 'active', 'progress', 'completed']) {
    events.on(event, ({ data }) => seen.push(event === 'progress' ? data : event))
  }
  const job = await queue.add('progress', { some: 'data' })
  assert.equal(await job.waitUntilFinished(events), 'done')
  await until(() => seen.includes('completed'))
  assert.deepEqual(seen, ['added', 'waiting', 'active', 10, 50, 100, 'completed'])
  assert.deepEqual((await queue.getJobLogs(job.id)).logs, ['a line'])
  assert.deepEqual((await queue.getJob(job.id)).data, { some: 'data', changed: true })
})

withQueue('pause and drain', [{ concurrency: 2 }], async ({ queue, events }) => {
  await queue.pause()
  const job = await queue.add('add', { left: 1, right: 1 })
  await sleep(300)
  assert.notEqual(await job.getState(), 'completed')
  assert.ok(await queue.isPaused())
  await queue.resume()
  assert.equal(await job.waitUntilFinished(events), 2)
  await queue.pause()
  await queue.add('add', { left: 1, right: 1 })
  await queue.drain()
  assert.equal(await queue.count(), 0)
})

withQueue('one job for many', [{}], async ({ queue, events }) => {
  await queue.pause()
  const first = await queue.add('add', { left: 1, right: 1 }, { jobId: 'the-same' })
  const second = await queue.add('add', { left: 2, right: 2 }, { jobId: 'the-same' })
  assert.equal(first.id, second.id)
  const kept = await queue.add('add', { left: 3, right: 3 }, { deduplication: { id: 'same', ttl: 60000 } })
  const dropped = await queue.add('add', { left: 4, right: 4 }, { deduplication: { id: 'same', ttl: 60000 } })
  assert.equal(kept.id, dropped.id)
  assert.equal(await queue.getDeduplicationJobId('same'), kept.id)
  await queue.resume()
  assert.equal(await kept.waitUntilFinished(events), 6)
  assert.equal(await queue.getCompletedCount(), 2)
})

withQueue('what is kept', [{}], async ({ queue, events }) => {
  const options = { removeOnComplete: { count: 3 }, removeOnFail: true }
  const jobs = []
  for (let n = 0; n < 10; n++) jobs.push(await queue.add('add', { left: n, right: n }, options))
  const failed = new Promise(resolve => events.on('failed', resolve))
  await queue.add('fail', { text: 'forgotten' }, options)
  await failed
  assert.equal(await queue.getCompletedCount(), 3)
  assert.equal(await queue.getFailedCount(), 0)
  assert.equal(await queue.getJob(jobs[0].id), undefined)
  assert.ok((await queue.exportPrometheusMetrics()).includes('bullmq_job_count'))
})

await Promise.all([start(first).ready, start(second).ready])
await Promise.all(tests.map(run => run()))
end()
