// One node of a socket.io service, for socketio.mjs: usage socketio_node.mjs KIND, where KIND is `plain`, or `sharded`.
import { createServer } from 'node:http'
import { connection, require } from './work.mjs'

const { Server } = require('socket.io')
const { createAdapter, createShardedAdapter } = require('@socket.io/redis-adapter')
const Redis = require('ioredis')
const { createClient } = require('redis')

async function adapterOf (kind) {
  if (kind === 'plain') return createAdapter(new Redis(connection), new Redis(connection))
  const publisher = createClient({ socket: connection })
  const subscriber = publisher.duplicate()
  await Promise.all([publisher.connect(), subscriber.connect()])
  return createShardedAdapter(publisher, subscriber)
}

const http = createServer()
const io = new Server(http, { adapter: await adapterOf(process.argv[2]) })
io.on('connection', socket => {
  socket.on('join', (room, done) => { socket.join(room); done() })
  socket.on('to', (room, text, done) => { io.to(room).emit('said', text); done() })
  socket.on('all', (text, done) => { io.emit('said', text); done() })
  socket.on('but', (room, text, done) => { io.except(room).emit('said', text); done() })
  socket.on('ask', async done => done(await io.timeout(5000).emitWithAck('question', 'how many?')))
  socket.on('sockets', async done => done((await io.fetchSockets()).length))
  socket.on('move', async (from, to, done) => { io.in(from).socketsJoin(to); done() })
  socket.on('throw out', (room, done) => { io.in(room).disconnectSockets(); done() })
  socket.on('between nodes', async done => done(await io.serverSideEmitWithAck('ping', 'from one')))
})
io.on('ping', (text, answer) => answer(`${text}: pong`))
http.listen(0, '127.0.0.1', () => console.log(`port ${http.address().port}`))
