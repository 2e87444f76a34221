// What the Node frameworks' tests share: where their server is, their modules, tests that are counted, and waiting.
import { createRequire } from 'node:module'
import path from 'node:path'

export const port = Number(process.env.FRAMEWORK_PORT)
export const require = createRequire(path.join(process.env.FRAMEWORK_HOME, 'node', 'index.js'))
export const connection = { host: '127.0.0.1', port }

let passed = 0
let failed = 0

export const sleep = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds))

export async function until (condition, seconds = 20) {
  const end = Date.now() + seconds * 1000
  for (;;) {
    const value = await condition()
    if (value) return value
    if (Date.now() > end) throw new Error(`not so after ${seconds} s: ${condition}`)
    await sleep(50)
  }
}

export async function test (name, body) {
  let timer
  const begin = Date.now()
  const late = new Promise((resolve, reject) => { timer = setTimeout(() => reject(new Error('took longer than 40 s')), 40000) })
  try {
    await Promise.race([body(), late])
    passed++
  } catch (error) {
    failed++
    console.log(`${name}: ${error.stack}`)
  }
  clearTimeout(timer)
  console.log(`${name}: ${Date.now() - begin} ms`)
}

export function end () {
  console.log(`${passed} passed, ${failed} failed`)
  process.exit(failed ? 1 : 0)
}
