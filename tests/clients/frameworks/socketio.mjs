// @socket.io/redis-adapter: three nodes of a service, each a process, talk over Pub/Sub; its sharded adapter over shard channels.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { end, require, sleep, test, until } from './work.mjs'

const { io: connect } = require('socket.io-client')
const script = fileURLToPath(new URL('./socketio_node.mjs', import.meta.url))

const startNode = kind => new Promise((resolve, reject) => {
  const node = spawn(process.execPath, [script, kind], { stdio: ['ignore', 'pipe', 'inherit'] })
  node.stdout.on('data', text => resolve(Number(text.toString().match(/port (\d+)/)[1])))
  node.on('exit', () => reject(new Error('the node ended')))
})

async function client (nodePort) {
  const socket = connect(`http://127.0.0.1:${nodePort}`, { transports: ['websocket'], reconnection: false })
  await new Promise((resolve, reject) => { socket.on('connect', resolve); socket.on('connect_error', reject) })
  socket.said = []
  socket.on('said', text => socket.said.push(text))
  socket.on('question', (text, answer) => answer(socket.id))
  return socket
}

const ask = (socket, ...words) => socket.timeout(10000).emitWithAck(...words)

await Promise.all(['plain', 'sharded'].map(async kind => {
  const ports = await Promise.all([startNode(kind), startNode(kind), startNode(kind)])
  const [a, b, c] = await Promise.all(ports.map(client))
  const everyone = [a, b, c]
  const heard = text => until(() => everyone.map(socket => socket.said.includes(text)))
  await sleep(500) // until every node listens

  await test(`${kind}: to everyone on every node`, async () => {
    await ask(a, 'all', 'first')
    await until(() => everyone.every(socket => socket.said.includes('first')))
  })

  await test(`${kind}: to a room, and to all but a room`, async () => {
    await ask(b, 'join', 'room')
    await ask(c, 'join', 'room')
    await sleep(300)
    await ask(a, 'to', 'room', 'second')
    await until(() => b.said.includes('second') && c.said.includes('second'))
    await ask(b, 'but', 'room', 'third')
    await until(() => a.said.includes('third'))
    await sleep(200)
    assert.deepEqual(await heard('second'), [false, true, true])
    assert.deepEqual(await heard('third'), [true, false, false])
  })

  await test(`${kind}: answers from every node`, async () => {
    assert.deepEqual((await ask(a, 'ask')).sort(), everyone.map(socket => socket.id).sort())
    assert.equal(await ask(b, 'sockets'), 3)
    assert.deepEqual(await ask(c, 'between nodes'), ['from one: pong', 'from one: pong'])
  })

  await test(`${kind}: sockets of other nodes are moved and thrown out`, async () => {
    await ask(a, 'move', 'room', 'other')
    await sleep(300)
    await ask(a, 'to', 'other', 'fourth')
    await until(() => b.said.includes('fourth') && c.said.includes('fourth'))
    await ask(a, 'throw out', 'other')
    await until(() => b.disconnected && c.disconnected)
    assert.ok(a.connected)
    assert.equal(await ask(a, 'sockets'), 1)
  })
}))

end()
