// A Tabella, pages that show its bell, and a browser. Between the browser and Tabella stands a proxy that a test
// can cut, as a laptop that sleeps does.
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { connect, createServer as createTcpServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export const modules = process.env.BROWSER_MODULES
const require = createRequire(join(modules, 'package.json'))
const { chromium } = require('playwright-core')
export const axeSource = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8')

// Without what makes it call home, or need more rights than a test has.
const browserArguments = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync']
export const openBrowser = () => chromium.launch({ executablePath: '/usr/bin/chromium', args: browserArguments })

const listening = (server) => new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server.address().port)))

export async function startTabella (...options) {
  const folder = mkdtempSync(join(tmpdir(), 'tabella-test-'))
  const process_ = spawn(process.env.TABELLA, ['serve', '--data', join(folder, 'data'), '--dynamodb', '127.0.0.1:0', '--http', '127.0.0.1:0', '--systems', 'inbox',
    '--log-level', 'warning', ...options], { stdio: ['ignore', 'pipe', 'inherit'] })
  const port = await new Promise((resolve, reject) => {
    let text = ''
    process_.stdout.on('data', (piece) => {
      text += piece
      const found = text.match(/Page and API on http:\/\/127\.0\.0\.1:(\d+)[^\n]*\n/)
      if (found) resolve(Number(found[1]))
    })
    process_.on('exit', () => reject(new Error('the server did not start')))
  })
  return {
    port,
    async stop () {
      process_.removeAllListeners('exit')
      const ended = new Promise((resolve) => process_.on('exit', resolve))
      process_.kill()
      await ended
      rmSync(folder, { recursive: true })
    }
  }
}

export async function startProxy (target) {
  const sockets = new Set()
  let isCut = false
  const server = createTcpServer((socket) => {
    if (isCut) return socket.destroy()
    const upstream = connect(target, '127.0.0.1')
    for (const [from, to] of [[socket, upstream], [upstream, socket]]) {
      sockets.add(from)
      from.on('error', () => to.destroy())
      from.on('close', () => { sockets.delete(from); to.destroy() })
      from.pipe(to)
    }
  })
  return {
    port: await listening(server),
    cut () { isCut = true; for (const socket of sockets) socket.destroy() },
    mend () { isCut = false },
    stop () { this.cut(); server.close() }
  }
}

// Serves pages: a path to the text, or to a function that gives it.
export async function startPages () {
  const pages = new Map()
  const server = createServer(async (request, response) => {
    const page = pages.get(request.url.split('?')[0])
    if (page === undefined) { response.writeHead(404); return response.end() }
    const { type = 'text/html; charset=utf-8', text } = typeof page === 'function' ? await page(request) : { text: page }
    response.writeHead(200, { 'Content-Type': type })
    response.end(text)
  })
  const port = await listening(server)
  return { pages, origin: `http://127.0.0.1:${port}`, stop: () => server.close() }
}
