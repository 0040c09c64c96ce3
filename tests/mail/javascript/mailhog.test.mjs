// MailHog's own client library and the mailer that most programs in JavaScript use, against a Tabella.
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, test } from 'node:test'

const require = createRequire(join(process.env.MAIL_MODULES, 'package.json'))
const mailhog = require('mailhog')
const nodemailer = require('nodemailer')

let folder, server, client, smtp, cert

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tabella-test-'))
  cert = join(folder, 'cert.pem')
  const key = join(folder, 'key.pem')
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', cert, '-days', '2', '-subj', '/CN=localhost',
    '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'], { stdio: 'ignore' })
  server = spawn(process.env.TABELLA, ['serve', '--data', join(folder, 'data'), '--dynamodb', '127.0.0.1:0', '--smtp', '127.0.0.1:0', '--http', '127.0.0.1:0',
    '--log-level', 'warning', '--smtp-tls-cert', cert, '--smtp-tls-key', key], { stdio: ['ignore', 'pipe', 'inherit'] })
  const said = await new Promise((resolve, reject) => {
    let text = ''
    server.stdout.on('data', (piece) => { text += piece; if (/Page and API.*\n/.test(text)) resolve(text) })
    server.on('exit', () => reject(new Error('the server did not start')))
  })
  smtp = Number(said.match(/smtp:\/\/127\.0\.0\.1:(\d+)/)[1])
  client = mailhog({ host: '127.0.0.1', port: Number(said.match(/Page and API on http:\/\/127\.0\.0\.1:(\d+)/)[1]) })
})

after(async () => {
  server.removeAllListeners('exit')
  const ended = new Promise((resolve) => server.on('exit', resolve))
  server.kill()
  await ended
  rmSync(folder, { recursive: true })
})

const transport = (options = {}) => nodemailer.createTransport({ host: '127.0.0.1', port: smtp, ignoreTLS: true, ...options })

beforeEach(async () => { assert.equal((await client.deleteAll()).statusCode, 200) })

test('messages are listed, newest first, with their parts decoded by the client', async () => {
  await transport().sendMail({ from: '"Jörg" <joerg@example.org>', to: 'a@example.org', cc: 'c@example.org', replyTo: 'r@example.org', subject: 'Übung', text: 'äöü' })
  await transport().sendMail({ from: 'b@example.org', to: 'b@example.org', subject: 'second', text: 'plain', html: '<b>bold</b>',
    attachments: [{ filename: 'note.txt', content: 'attached', encoding: 'utf8' }] })
  const result = await client.messages()
  assert.equal(result.total, 2)
  assert.equal(result.count, 2)
  const [second, first] = result.items
  assert.equal(first.subject, 'Übung')
  assert.equal(first.from, 'Jörg <joerg@example.org>')
  assert.equal(first.to, 'a@example.org')
  assert.equal(first.cc, 'c@example.org')
  assert.equal(first.replyTo, 'r@example.org')
  assert.equal(first.text, 'äöü')
  assert.ok(first.date instanceof Date && first.deliveryDate instanceof Date)
  assert.equal(second.text, 'attached') // the library looks at the top level only, where this is the first text
  assert.equal(second.attachments.length, 1)
  assert.equal(second.attachments[0].name, 'note.txt')
  assert.equal(client.decode(second.attachments[0].Body, second.attachments[0].encoding), 'attached')
  assert.equal((await client.messages(1, 1)).items[0].ID, first.ID)
})

test('plain and HTML bodies side by side', async () => {
  await transport().sendMail({ from: 'a@example.org', to: 'b@example.org', subject: 'both', text: 'plain ü', html: '<b>bold ü</b>' })
  const message = await client.latestTo('b@example.org')
  assert.equal(message.text, 'plain ü')
  assert.equal(message.html, '<b>bold ü</b>')
})

test('searching', async () => {
  await transport().sendMail({ from: 'sender@example.org', to: 'one@example.org', subject: 'first', text: 'äöü is encoded' })
  await transport().sendMail({ from: 'sender@example.org', to: 'two@example.org', subject: 'second', text: 'other' })
  assert.equal((await client.latestFrom('sender@example.org')).subject, 'second')
  assert.equal((await client.latestTo('one@example.org')).subject, 'first')
  assert.equal((await client.latestContaining('ENCODED')).subject, 'first')
  assert.equal((await client.latestContaining('=C3=A4=C3=B6=C3=BC')).subject, 'first') // as it stands in the message
  assert.equal(await client.latestContaining('nowhere'), 0)
  const page = await client.search('sender@example.org', 'from', 1, 1)
  assert.equal(page.total, 2)
  assert.equal(page.count, 1)
  assert.equal(page.items[0].subject, 'first')
})

test('releasing and deleting', async () => {
  await transport().sendMail({ from: 'a@example.org', to: 'b@example.org', subject: 'released', text: 'x' })
  const message = await client.latestTo('b@example.org')
  const response = await client.releaseMessage(message.ID, { host: '127.0.0.1', port: String(smtp), email: 'again@example.org' })
  assert.equal(response.statusCode, 200)
  assert.equal((await client.latestTo('again@example.org')).subject, 'released')
  assert.equal((await client.deleteMessage(message.ID)).statusCode, 200)
  assert.equal((await client.messages()).total, 1)
})

test('nodemailer with STARTTLS, login and addresses beyond ASCII', async () => {
  const tls = { ca: readFileSync(cert), servername: 'localhost' }
  for (const method of ['PLAIN', 'LOGIN', 'CRAM-MD5']) {
    await transport({ ignoreTLS: false, requireTLS: true, tls, auth: { user: 'me', pass: 'secret' }, authMethod: method })
      .sendMail({ from: 'a@example.org', to: 'b@example.org', subject: method, text: 'x' })
  }
  await transport({ ignoreTLS: false, tls }).sendMail({ from: 'müller@example.org', to: 'søren@example.org', subject: 'utf8', text: 'x' })
  assert.equal((await client.messages()).total, 4)
  assert.equal((await client.latestTo('søren@example.org')).subject, 'utf8')
})

test('an attachment of 20 MB', async () => {
  const content = Buffer.alloc(20 << 20, 'tabella ')
  await transport().sendMail({ from: 'a@example.org', to: 'large@example.org', subject: 'large', text: 'x', attachments: [{ filename: 'large.bin', content }] })
  const message = await client.latestTo('large@example.org')
  assert.equal(message.attachments[0].name, 'large.bin')
  assert.ok(Buffer.from(message.attachments[0].Body, 'base64').equals(content))
})
