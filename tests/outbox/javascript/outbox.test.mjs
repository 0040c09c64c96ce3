// The AWS SDK for JavaScript v3 and nodemailer, unchanged, sending through a Tabella.
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'

const require = createRequire(join(process.env.OUTBOX_MODULES, 'package.json'))
const sdk = require('@aws-sdk/client-sesv2')
const nodemailer = require('nodemailer')

let folder, server, address, client, submission, cert

const freePort = () => new Promise((resolve) => {
  const probe = createServer().listen(0, '127.0.0.1', () => {
    const { port } = probe.address()
    probe.close(() => resolve(port))
  })
})

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tabella-test-'))
  cert = join(folder, 'cert.pem')
  const key = join(folder, 'key.pem')
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', cert, '-days', '2', '-subj', '/CN=localhost',
    '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'], { stdio: 'ignore' })
  writeFileSync(join(folder, 'users'), 'me:secret\n')
  submission = await freePort()
  server = spawn(process.env.TABELLA, ['serve', '--data', join(folder, 'data'), '--dynamodb', '127.0.0.1:0', '--smtp', '127.0.0.1:0', '--http', '127.0.0.1:0',
    '--log-level', 'warning', '--submission', `127.0.0.1:${submission}`, '--submission-tls-cert', cert, '--submission-tls-key', key,
    '--submission-auth-file', join(folder, 'users')], { stdio: ['ignore', 'pipe', 'inherit'] })
  const said = await new Promise((resolve, reject) => {
    let text = ''
    server.stdout.on('data', (piece) => { text += piece; if (/Page and API.*\n/.test(text)) resolve(text) })
    server.on('exit', () => reject(new Error('the server did not start')))
  })
  address = said.match(/Page and API on (http:\/\/127\.0\.0\.1:\d+)/)[1]
  client = new sdk.SESv2Client({ endpoint: address, region: 'us-east-1', credentials: { accessKeyId: 'any', secretAccessKey: 'thing' } })
})

after(async () => {
  client.destroy()
  server.removeAllListeners('exit')
  const ended = new Promise((resolve) => server.on('exit', resolve))
  server.kill()
  await ended
  rmSync(folder, { recursive: true })
})

// The email once it is sent, and its message.
async function sent(id) {
  for (let tries = 0; tries < 1000; ++tries) {
    const email = await (await fetch(`${address}/outbox/emails/${id}`)).json()
    if (email.status === 'SENT') return { email, raw: await (await fetch(`${address}/outbox/emails/${id}/raw`)).text() }
    assert.ok(['READY', 'PROCESSING'].includes(email.status), JSON.stringify(email))
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  assert.fail(`${id} is not sent`)
}

const captured = async (query) => (await (await fetch(`${address}/api/v3/messages?query=${encodeURIComponent(query)}`)).json()).messages
const from = { FromEmailAddress: 'Shop <shop@example.com>', Destination: { ToAddresses: ['ann@example.org'] } }

test('SendEmail with headers and attachments, which older clients do not have', async () => {
  const { MessageId } = await client.send(new sdk.SendEmailCommand({
    ...from,
    Content: {
      Simple: {
        Subject: { Data: 'Grüße' }, Body: { Text: { Data: 'see the picture' }, Html: { Data: '<img src="cid:pixel">' } },
        Headers: [{ Name: 'List-Unsubscribe', Value: '<https://example.com/u>' }],
        Attachments: [{ FileName: 'note.txt', RawContent: Buffer.from('attached'), ContentType: 'text/plain', ContentDisposition: 'ATTACHMENT' },
          { FileName: 'pixel.gif', RawContent: Buffer.from('GIF89a'), ContentType: 'image/gif', ContentId: 'pixel', ContentDisposition: 'INLINE' }],
      },
    },
  }))
  const { raw } = await sent(MessageId)
  assert.match(raw, /^List-Unsubscribe: <https:\/\/example.com\/u>\r$/m)
  assert.match(raw, /Content-Disposition: attachment;\s+filename="?note.txt/)
  assert.match(raw, /Content-ID: <pixel>/i)
  assert.equal((await captured('subject:Grüße')).length, 1)
})

test('SendEmail of a raw message and by a template that comes along', async () => {
  const Data = Buffer.from('From: a@example.com\r\nTo: b@example.org\r\nSubject: raw by JavaScript\r\n\r\nx\r\n')
  const { email } = await sent((await client.send(new sdk.SendEmailCommand({ Content: { Raw: { Data } } }))).MessageId)
  assert.deepEqual(email.message.recipients.map(({ address: to }) => to), ['b@example.org'])
  const TemplateContent = { Subject: 'Hello, {{name}}', Text: '{{#each items}}{{this}} {{/each}}' }
  const { raw } = await sent((await client.send(new sdk.SendEmailCommand({
    ...from, Content: { Template: { TemplateContent, TemplateData: JSON.stringify({ name: 'Ann', items: [1, 2, 3] }) } },
  }))).MessageId)
  assert.match(raw, /^Subject: Hello, Ann\r$/m)
  assert.match(raw, /^1 2 3/m)
})

test('templates, bulks and the suppression list', async () => {
  const TemplateName = 'hello'
  await client.send(new sdk.CreateEmailTemplateCommand({ TemplateName, TemplateContent: { Subject: 'Bulk for {{name}}', Text: 'x' } }))
  const { BulkEmailEntryResults: results } = await client.send(new sdk.SendBulkEmailCommand({
    FromEmailAddress: 'shop@example.com', DefaultContent: { Template: { TemplateName, TemplateData: '{"name": "all"}', Headers: [{ Name: 'X-Order', Value: 'default' }] } },
    BulkEmailEntries: [{ Destination: { ToAddresses: ['ann@example.org'] }, ReplacementHeaders: [{ Name: 'X-Order', Value: 'own' }] },
      { Destination: { ToAddresses: ['bob@example.org'] }, ReplacementEmailContent: { ReplacementTemplate: { ReplacementTemplateData: '{"name": "Bob"}' } } }],
  }))
  assert.deepEqual(results.map(({ Status }) => Status), ['SUCCESS', 'SUCCESS'])
  const [first, second] = await Promise.all(results.map(({ MessageId }) => sent(MessageId)))
  assert.match(first.raw, /^Subject: Bulk for all\r$/m)
  assert.match(first.raw, /^X-Order: own\r$/m)
  assert.match(second.raw, /^Subject: Bulk for Bob\r$/m)
  assert.match(second.raw, /^X-Order: default\r$/m)
  await client.send(new sdk.PutSuppressedDestinationCommand({ EmailAddress: 'gone@example.org', Reason: 'BOUNCE' }))
  const { SuppressedDestinationSummaries: listed } = await client.send(new sdk.ListSuppressedDestinationsCommand({ Reasons: ['BOUNCE'] }))
  assert.deepEqual(listed.map(({ EmailAddress, Reason }) => [EmailAddress, Reason]), [['gone@example.org', 'BOUNCE']])
  assert.ok(listed[0].LastUpdateTime instanceof Date)
  assert.equal((await client.send(new sdk.GetAccountCommand({}))).SendingEnabled, true)
})

test('errors are those of SES', async () => {
  await assert.rejects(client.send(new sdk.GetEmailTemplateCommand({ TemplateName: 'nowhere' })), sdk.NotFoundException)
  await assert.rejects(client.send(new sdk.SendEmailCommand({ ...from, Content: {} })), sdk.BadRequestException)
  await client.send(new sdk.CreateConfigurationSetCommand({ ConfigurationSetName: 'news' }))
  await assert.rejects(client.send(new sdk.CreateConfigurationSetCommand({ ConfigurationSetName: 'news' })), sdk.AlreadyExistsException)
})

test('nodemailer over submission, with STARTTLS and a login', async () => {
  const transport = (pass) => nodemailer.createTransport({
    host: '127.0.0.1', port: submission, requireTLS: true, tls: { ca: readFileSync(cert), servername: 'localhost' }, auth: { user: 'me', pass },
  })
  const info = await transport('secret').sendMail({ from: '"Jörg" <joerg@example.com>', to: 'a@example.org', bcc: 'b@example.org', subject: 'by nodemailer ü', text: 'plain ü',
    html: '<b>bold ü</b>', attachments: [{ filename: 'note.txt', content: 'attached' }], headers: { 'X-Outbox-Priority': 'high' } })
  const { email, raw } = await sent(info.response.split(' ').at(-1))
  assert.deepEqual([email.message.door, email.message.priority], ['submission', 'high'])
  assert.deepEqual(email.message.recipients.map(({ address: to, result }) => [to, result]), [['a@example.org', 'delivered'], ['b@example.org', 'delivered']])
  assert.doesNotMatch(raw, /X-Outbox|^Bcc/im)
  assert.match(raw, new RegExp(`^Message-ID: ${info.messageId}\\r$`, 'm'))
  assert.equal((await captured('subject:"by nodemailer"')).length, 1)
  await assert.rejects(transport('wrong').sendMail({ from: 'a@example.org', to: 'b@example.org', text: 'x' }), { code: 'EAUTH' })
})

test('nodemailer as the transport of the SDK', async () => {
  const transport = nodemailer.createTransport({ streamTransport: true, buffer: true, newline: 'windows' })
  const { message: Data } = await transport.sendMail({ from: 'a@example.com', to: 'b@example.org', subject: 'built by nodemailer', text: 'x' })
  const { raw } = await sent((await client.send(new sdk.SendEmailCommand({ Content: { Raw: { Data } } }))).MessageId)
  assert.equal(raw, Data.toString())
})
