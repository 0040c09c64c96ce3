// The bell in Chromium, against a real Tabella.
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, beforeEach, test } from 'node:test'
import { axeSource, modules, openBrowser, startPages, startProxy, startTabella } from './harness.mjs'

const source = process.env.SOURCE
const web = join(source, 'web')

let tabella, proxy, pages, browser, context, tenant
let tenants = 0

before(async () => {
  pages = await startPages()
  tabella = await startTabella('--cors-origin', pages.origin)
  proxy = await startProxy(tabella.port)
  browser = await openBrowser()
})

after(async () => {
  await browser.close()
  proxy.stop()
  pages.stop()
  await tabella.stop()
})

beforeEach(async () => {
  tenant = `shop${++tenants}`
  context = await browser.newContext({ viewport: { width: 900, height: 700 } })
  await call('GET', 'counts', undefined, 'ann') // ann comes for the first time
})

afterEach(async () => {
  proxy.mend()
  await context.close()
})

async function call (method, path, body, user) {
  const response = await fetch(`http://127.0.0.1:${tabella.port}/inbox/${tenant}/bell/${path}`, {
    method, headers: user ? { 'X-Inbox-User': user } : {}, ...(body ? { body: JSON.stringify(body) } : {})
  })
  const answer = await response.json()
  assert.ok(response.ok, JSON.stringify(answer))
  return answer
}
const publish = (title, more = {}) =>
  call('POST', 'messages/post', { to: 'ann', ...more, message: { title, ...more.message } }).then((post) => post.id)
const counts = () => call('GET', 'counts', undefined, 'ann')

// The example's page, with the addresses of this test.
function example (attributes = '', html = '') {
  const api = `http://127.0.0.1:${proxy.port}`
  return readFileSync(join(source, 'examples/bell/index.html'), 'utf8')
    .replaceAll('http://localhost:8025', api)
    .replace('tenant="shop"', `tenant="${tenant}" ${attributes}`)
    .replace('</tabella-inbox>', `${html}</tabella-inbox>`)
}

async function open (attributes = '', { html = '', change = (page) => page, opened = true } = {}) {
  pages.pages.set('/', change(example(attributes, html)))
  const page = await context.newPage()
  page.problems = []
  page.on('pageerror', (error) => page.problems.push(error.message))
  page.on('dialog', (dialog) => { page.problems.push(`dialog ${dialog.message()}`); dialog.dismiss() })
  await page.goto(pages.origin)
  await until(page, () => document.querySelector('tabella-inbox').client.connection === 'live')
  if (opened) await page.click('tabella-inbox .bell')
  return page
}

const until = (page, condition, argument) => page.waitForFunction(condition, argument, { timeout: 20_000, polling: 20 })
const titles = (page) => page.evaluate(() => document.querySelector('tabella-inbox').client.messages.map((one) => one.message.title))
const badge = (page) => page.evaluate(() => document.querySelector('tabella-inbox').shadowRoot.querySelector('.badge')?.textContent ?? '')
const untilBadge = (page, text) => until(page, (text) => (document.querySelector('tabella-inbox').shadowRoot.querySelector('.badge')?.textContent ?? '') === text, text)
const untilTitles = (page, expected) =>
  until(page, (expected) => JSON.stringify(document.querySelector('tabella-inbox').client.messages.map((one) => one.message.title)) === expected, JSON.stringify(expected))
const row = (page, title) => page.locator('tabella-inbox .row', { hasText: title })

async function violations (page) {
  await page.evaluate(axeSource)
  const result = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }))
  return result.violations.map((one) => `${one.id}: ${one.nodes.map((node) => `${node.target} ${node.failureSummary}`).join('; ')}`)
}

test('a message arrives as it is published, and the badge is exact', async () => {
  const page = await open()
  await publish('one', { category: 'orders' })
  await untilBadge(page, '1')
  await publish('two', { to: 'everyone' })
  await untilBadge(page, '2')
  assert.deepEqual(await titles(page), ['two', 'one'])
  await row(page, 'one').waitFor()
  assert.equal(await page.locator('tabella-inbox [role=tab]').count(), 2)
  await page.locator('tabella-inbox [role=tab]', { hasText: 'orders' }).click()
  await untilTitles(page, ['one'])
  assert.equal((await counts()).all.unread, 2)
  assert.deepEqual(page.problems, [])
})

test('read, undone; archived, undone', async () => {
  await publish('one')
  const page = await open()
  await untilBadge(page, '1')
  await row(page, 'one').hover()
  await row(page, 'one').getByRole('button', { name: 'Mark as read' }).click()
  await untilBadge(page, '')
  await page.getByRole('button', { name: 'Undo' }).click()
  await untilBadge(page, '1')
  assert.equal((await counts()).all.unread, 1)
  await row(page, 'one').hover()
  await row(page, 'one').getByRole('button', { name: 'Archive' }).click()
  await untilTitles(page, [])
  await untilBadge(page, '')
  await page.getByRole('button', { name: 'Undo' }).click()
  await untilTitles(page, ['one'])
  await untilBadge(page, '1')
  assert.deepEqual((await counts()).all, { total: 1, unread: 1, unseen: 0, archived: 0, snoozed: 0 })
})

test('marking all: of a category, then of all; unread again counts', async () => {
  for (const title of ['a', 'b']) await publish(title, { category: 'orders' })
  await publish('c', { category: 'news' })
  await publish('d', { to: 'everyone' })
  const page = await open()
  await untilBadge(page, '4')
  await page.locator('tabella-inbox [role=tab]', { hasText: 'orders' }).click()
  await untilTitles(page, ['b', 'a'])
  await page.getByRole('button', { name: 'Mark all as read' }).click()
  await untilBadge(page, '2')
  await page.locator('tabella-inbox [role=tab]', { hasText: 'All' }).click()
  await untilTitles(page, ['d', 'c', 'b', 'a'])
  await page.getByRole('button', { name: 'Mark all as read' }).click()
  await untilBadge(page, '')
  await row(page, 'c').hover()
  await row(page, 'c').getByRole('button', { name: 'Mark as unread' }).click()
  await untilBadge(page, '1')
  await until(page, () => document.querySelector('tabella-inbox').shadowRoot.querySelectorAll('.row.unread').length === 1)
  assert.equal((await counts()).all.unread, 1)
})

test('what is redacted disappears at once', async () => {
  const mine = await publish('mine')
  const everyones = await publish('everyones', { to: 'everyone' })
  const page = await open()
  await untilTitles(page, ['everyones', 'mine'])
  await call('DELETE', 'messages/redact', { ids: [mine] })
  await untilTitles(page, ['everyones'])
  await call('DELETE', 'messages/redact', { ids: [everyones] })
  await untilTitles(page, [])
  await untilBadge(page, '')
  await page.getByText('Nothing here yet').waitFor()
})

test('what expires leaves the page at its second', async () => {
  await publish('short', { ttl: '3s' })
  await publish('long')
  const page = await open()
  await untilTitles(page, ['long', 'short'])
  await untilBadge(page, '2')
  await untilTitles(page, ['long'])
  await untilBadge(page, '1')
})

test('what is snoozed is found among the snoozed, and taken back from there', async () => {
  await publish('one')
  const page = await open()
  await row(page, 'one').hover()
  await row(page, 'one').getByRole('button', { name: 'Snooze' }).click()
  await untilTitles(page, [])
  await untilBadge(page, '')
  await page.locator('tabella-inbox select').selectOption('snoozed')
  await untilTitles(page, ['one'])
  await row(page, 'one').hover()
  await row(page, 'one').getByRole('button', { name: 'Move back' }).click()
  await untilTitles(page, [])
  await untilBadge(page, '1')
  await page.locator('tabella-inbox select').selectOption('active')
  await untilTitles(page, ['one'])
  assert.equal((await counts()).all.unread, 1)
})

test('what the server does not take is shown as it was', async () => {
  await publish('one')
  const page = await open()
  await untilBadge(page, '1')
  proxy.cut()
  await row(page, 'one').hover()
  await row(page, 'one').getByRole('button', { name: 'Mark as read' }).click()
  await page.locator('tabella-inbox .toast').waitFor()
  await untilBadge(page, '1')
  assert.equal(await page.locator('tabella-inbox .row.unread').count(), 1)
  proxy.mend()
  await until(page, () => document.querySelector('tabella-inbox').client.connection === 'live')
  await untilBadge(page, '1')
  assert.equal((await counts()).all.unread, 1)
})

test('after a sleep nothing is lost and nothing is there twice', async () => {
  await publish('before')
  const page = await open()
  await untilTitles(page, ['before'])
  proxy.cut()
  await until(page, () => document.querySelector('tabella-inbox').client.connection !== 'live')
  const expected = ['before']
  for (let i = 0; i < 50; ++i) {
    await publish(`slept ${i}`, { to: i % 3 ? 'ann' : 'everyone' })
    expected.unshift(`slept ${i}`)
  }
  await page.getByText('Connecting…').waitFor()
  proxy.mend()
  await untilTitles(page, expected)
  await untilBadge(page, '51')
  // Longer than is told one by one: the page begins anew.
  proxy.cut()
  for (let i = 0; i < 250; ++i) await publish(`long ${i}`)
  proxy.mend()
  await until(page, () => document.querySelector('tabella-inbox').client.messages[0].message.title === 'long 249')
  await untilBadge(page, '301')
  const all = await titles(page)
  assert.equal(new Set(all).size, all.length)
})

test('ten thousand messages are scrolled through, with few of them in the page', async () => {
  const many = 10_000
  const numbers = [...Array(many).keys()]
  await Promise.all(Array.from({ length: 16 }, async () => {
    for (let number; (number = numbers.pop()) !== undefined;) await publish(`number ${number}`)
  }))
  const page = await open()
  await untilBadge(page, '999+')
  const most = await page.evaluate(async () => {
    const element = document.querySelector('tabella-inbox')
    const list = element.shadowRoot.querySelector('.list')
    let most = 0
    const until = Date.now() + 100_000
    while (!element.client.complete && Date.now() < until) {
      list.scrollTop = list.scrollHeight
      await new Promise((resolve) => setTimeout(resolve, 5))
      most = Math.max(most, element.shadowRoot.querySelectorAll('.row').length)
    }
    return most
  })
  assert.ok(most < 60, `${most} rows in the page`)
  const all = await titles(page)
  assert.equal(all.length, many)
  assert.equal(new Set(all).size, many)
  // What one reads does not move when something comes: it is behind the pill.
  await page.evaluate(() => { document.querySelector('tabella-inbox').shadowRoot.querySelector('.list').scrollTop = 40_000 })
  await page.waitForTimeout(100)
  const first = () => page.evaluate(() => {
    const root = document.querySelector('tabella-inbox').shadowRoot
    const top = root.querySelector('.list').getBoundingClientRect().top
    const rows = [...root.querySelectorAll('.row')].filter((one) => one.getBoundingClientRect().bottom > top + 1)
    return rows.sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top)[0].querySelector('.name').textContent
  })
  const reading = await first()
  await publish('fresh')
  const pill = page.getByRole('button', { name: '1 new' })
  await pill.waitFor()
  await page.waitForTimeout(100)
  assert.equal(await first(), reading)
  await pill.click()
  await until(page, () => document.querySelector('tabella-inbox').shadowRoot.querySelector('.list').scrollTop === 0)
  await row(page, 'fresh').waitFor()
})

test('two tabs are in step', async () => {
  for (const title of ['ant', 'bee', 'cat']) await publish(title)
  const [one, two] = [await open(), await open()]
  await row(one, 'bee').hover()
  await row(one, 'bee').getByRole('button', { name: 'Mark as read' }).click()
  await untilBadge(two, '2')
  await until(two, () => document.querySelector('tabella-inbox').client.messages.find((message) => message.message.title === 'bee').read)
  await row(two, 'ant').hover()
  await row(two, 'ant').getByRole('button', { name: 'Archive' }).click()
  await untilTitles(one, ['cat', 'bee'])
  await one.getByRole('button', { name: 'Mark all as read' }).click()
  await untilBadge(two, '')
  await until(two, () => document.querySelector('tabella-inbox').client.messages.every((message) => message.read))
})

test('the keyboard alone is enough', async () => {
  for (const title of ['a', 'b', 'c']) await publish(title, { category: 'orders', ...(title === 'b' ? { message: { cta_uri: '/#orders' } } : {}) })
  const page = await open('', { opened: false })
  await untilBadge(page, '3')
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter') // opens
  const focused = () => page.evaluate(() => {
    const active = document.querySelector('tabella-inbox').shadowRoot.activeElement
    return active?.querySelector('.name')?.textContent ?? active?.textContent.trim() ?? ''
  })
  const press = async (key, expected) => {
    await page.keyboard.press(key)
    await page.waitForTimeout(60)
    if (expected !== undefined) assert.match(await focused(), expected, `after ${key}`)
  }
  await press('Tab')
  await press('Tab')
  await press('Tab')
  await press('Tab', /^All/)
  await press('ArrowRight', /^orders/)
  await untilTitles(page, ['c', 'b', 'a'])
  await press('Tab', /c$/)
  await press('ArrowDown', /b$/)
  await press('End', /a$/)
  await press('e') // archives
  await untilTitles(page, ['c', 'b'])
  await page.waitForTimeout(60)
  assert.match(await focused(), /b$/)
  await press('u') // reads
  await untilBadge(page, '1')
  await press('u')
  await untilBadge(page, '2')
  await press('Enter') // follows the link, and reads
  await page.waitForURL(/#orders$/)
  await untilBadge(page, '1')
  await press('Escape')
  assert.equal(await page.evaluate(() => document.querySelector('tabella-inbox').open), false)
  assert.match(await page.evaluate(() => document.querySelector('tabella-inbox').shadowRoot.activeElement.className), /bell/)
})

test('the keyboard stays at its message when others come, and the place at the top when rows above go', async () => {
  for (const title of ['ant', 'bee', 'cat']) await publish(title)
  const page = await open()
  await untilTitles(page, ['cat', 'bee', 'ant'])
  await page.evaluate(() => document.querySelector('tabella-inbox').shadowRoot.querySelectorAll('.row')[1].focus())
  await publish('above')
  await untilTitles(page, ['above', 'cat', 'bee', 'ant'])
  await page.keyboard.press('e')
  await untilTitles(page, ['above', 'cat', 'ant'])
  await page.keyboard.press('s') // snoozes the one in its place
  await untilTitles(page, ['above', 'cat'])
  for (let i = 0; i < 30; ++i) await publish(`more ${i}`)
  await until(page, () => document.querySelector('tabella-inbox').client.messages.length === 32)
  const scroll = () => page.evaluate(() => document.querySelector('tabella-inbox').shadowRoot.querySelector('.list').scrollTop)
  await page.evaluate(() => { document.querySelector('tabella-inbox').shadowRoot.querySelector('.list').scrollTop = 20 * 76 })
  await page.waitForTimeout(100)
  const newest = await call('GET', 'messages?limit=1', undefined, 'ann')
  await call('DELETE', 'messages/redact', { ids: [newest.messages[0].id] })
  await until(page, () => document.querySelector('tabella-inbox').client.messages.length === 31)
  await page.waitForTimeout(100)
  assert.equal(await scroll(), 19 * 76)
  // Closed and opened again it begins at the top, with rows.
  await page.keyboard.press('Escape')
  await page.click('tabella-inbox .bell')
  await row(page, 'more 28').waitFor()
})

test('a view that was emptied fills again', async () => {
  for (let i = 0; i < 40; ++i) await publish(`old ${i}`)
  const page = await open()
  await page.locator('tabella-inbox select').selectOption('unread')
  await untilBadge(page, '40')
  await page.getByRole('button', { name: 'Mark all as read' }).click()
  await untilTitles(page, [])
  await untilBadge(page, '')
  await publish('new')
  await untilTitles(page, ['new'])
})

test('what crosses with a page is not lost', async () => {
  await publish('before', { category: 'constructor' })
  const page = await open('', { change: (html) => html.replace('<html lang="en">', '<html lang="en_US">') })
  await untilTitles(page, ['before'])
  let release
  const held = new Promise((resolve) => { release = resolve })
  await page.route('**/messages?**', async (route) => {
    const response = await route.fetch() // as it is now
    await held
    await route.fulfill({ response })
  })
  await page.locator('tabella-inbox [role=tab]', { hasText: 'constructor' }).click()
  await page.waitForTimeout(200)
  const gone = (await call('GET', 'messages?limit=1', undefined, 'ann')).messages[0].id
  await call('DELETE', 'messages/redact', { ids: [gone] })
  await publish('meanwhile', { category: 'constructor' })
  await untilBadge(page, '1')
  release()
  await untilTitles(page, ['meanwhile'])
  await call('PUT', 'messages/read', { all: true }, 'ann')
  await until(page, () => document.querySelector('tabella-inbox').client.messages.every((message) => message.read))
})

test('a token given as text is made anew before it ends', async () => {
  const response = await fetch(`http://127.0.0.1:${tabella.port}/inbox/${tenant}/tokens`, { method: 'POST', body: JSON.stringify({ user: 'ann', ttl: '8s' }) })
  const { token } = await response.json()
  const page = await open('', { opened: false, change: (html) => html.replace('user="ann"', `token="${token}"`) })
  await page.waitForTimeout(10_000)
  await publish('after it would have ended')
  await untilBadge(page, '1')
})

test('an element that is taken away and put back goes on', async () => {
  const page = await open()
  await page.evaluate(() => {
    const element = document.querySelector('tabella-inbox')
    const parent = element.parentElement
    const old = element.client
    element.remove()
    globalThis.stopped = element.client === undefined && old !== undefined
    parent.append(element)
  })
  assert.ok(await page.evaluate(() => globalThis.stopped))
  await publish('one')
  await untilBadge(page, '1')
})

test('screen readers hear of it', async () => {
  const page = await open('', { opened: false })
  await page.getByRole('button', { name: 'Notifications', exact: true }).waitFor()
  for (const title of ['a', 'b', 'c']) await publish(title)
  await page.getByRole('button', { name: 'Notifications, 3 unread' }).waitFor()
  await until(page, () => /^[123] new notifications?$/.test(document.querySelector('tabella-inbox').shadowRoot.querySelector('[aria-live]').textContent))
  await page.click('tabella-inbox .bell')
  await page.getByRole('dialog', { name: 'Notifications' }).waitFor()
  await page.getByRole('feed', { name: 'Notifications' }).waitFor()
  await page.getByRole('article', { name: 'Unread. a' }).waitFor()
})

test('axe finds nothing: light and dark, right to left, empty, on a phone', async () => {
  const empty = await open()
  assert.deepEqual(await violations(empty), [])
  await empty.close()
  await publish('one', { category: 'orders', message: { body: 'text', cta_uri: '/' } })
  await publish('two', { to: 'everyone', category: 'news' })
  for (const theme of ['light', 'dark']) {
    const page = await open(`theme="${theme}"`, { change: (html) => html.replace('color-scheme: light dark', `color-scheme: ${theme}; background: Canvas; color: CanvasText`) })
    await row(page, 'one').waitFor()
    await row(page, 'one').hover()
    await page.waitForTimeout(200)
    assert.deepEqual(await violations(page), [], theme)
    await page.close()
  }
  const arabic = await open('', { change: (html) => html.replace('<html lang="en">', '<html lang="ar" dir="rtl">') })
  assert.deepEqual(await violations(arabic), [])
  await arabic.setViewportSize({ width: 360, height: 640 })
  assert.deepEqual(await violations(arabic), [])
})

test('right to left, dark, and other words', async () => {
  await publish('واحد')
  await context.close()
  context = await browser.newContext({ colorScheme: 'dark', viewport: { width: 900, height: 700 } })
  const texts = JSON.stringify({ title: 'الإشعارات', open: { other: 'الإشعارات، {count} غير مقروءة' } }).replaceAll('"', '&quot;')
  const page = await open(`texts="${texts}"`, { change: (html) => html.replace('<html lang="en">', '<html lang="ar-EG" dir="rtl">') })
  await page.getByRole('dialog', { name: 'الإشعارات' }).waitFor()
  assert.match(await page.locator('tabella-inbox .bell').getAttribute('aria-label'), /١|1/)
  const look = await page.evaluate(() => {
    const root = document.querySelector('tabella-inbox').shadowRoot
    const box = (selector) => root.querySelector(selector).getBoundingClientRect()
    return { panel: box('.panel').left, bell: box('.bell').left, dot: box('.dot').left, name: box('.name').left, background: getComputedStyle(root.querySelector('.panel')).backgroundColor }
  })
  assert.ok(look.dot > look.name, 'the dot stands before the title')
  assert.ok(look.panel >= 0 && look.panel <= look.bell + 50, 'the panel opens into the page')
  assert.equal(look.background, 'rgb(23, 28, 37)')
})

test('hostile messages do nothing', async () => {
  const links = ['javascript:alert(1)', 'JaVa\tScRiPt:alert(1)', 'data:text/html,<script>alert(1)</script>', ' javascript:alert(1)', 'vbscript:x']
  for (const cta_uri of links) {
    const response = await fetch(`http://127.0.0.1:${tabella.port}/inbox/${tenant}/bell/messages/post`, {
      method: 'POST', body: JSON.stringify({ to: 'ann', message: { title: 'x', cta_uri } })
    })
    assert.equal(response.status, 400, cta_uri)
  }
  // The page does not trust the server either.
  const hostile = '<img src=x onerror=alert(1)><script>alert(2)</script>'
  await publish(hostile, { category: '"><img src=x onerror=alert(3)>', message: { body: hostile } })
  const page = await open()
  await page.route('**/messages?**', async (route) => {
    const response = await route.fetch()
    const json = await response.json()
    for (const message of json.messages) message.message.cta_uri = 'javascript:alert(4)'
    await route.fulfill({ response, json })
  })
  await page.locator('tabella-inbox [role=tab]').nth(1).click()
  await row(page, '<img').waitFor()
  await page.locator('tabella-inbox .row .name').click()
  await page.waitForTimeout(300)
  const inside = await page.evaluate(() => [...document.querySelector('tabella-inbox').shadowRoot.querySelectorAll('img, script, a')].length)
  assert.equal(inside, 0)
  assert.deepEqual(page.problems, [])
})

test('a token that ends is asked for again, and one that is refused is told', async () => {
  const token = async (ttl) => {
    const response = await fetch(`http://127.0.0.1:${tabella.port}/inbox/${tenant}/tokens`, { method: 'POST', body: JSON.stringify({ user: 'ann', ttl }) })
    return (await response.json()).token
  }
  await publish('one')
  let asked = 0
  pages.pages.set('/token', async () => ({ type: 'application/json', text: JSON.stringify({ token: await token(asked++ ? '1h' : '1s') }) }))
  const page = await open('', { opened: false })
  await page.evaluate(() => { document.querySelector('tabella-inbox').token = async () => (await (await fetch('/token')).json()).token })
  await page.waitForTimeout(1500) // the first token, and the stream that came with it, have ended
  await publish('two')
  await untilTitles(page, ['two', 'one'])
  assert.ok(asked >= 2)
  await page.evaluate(() => { document.querySelector('tabella-inbox').token = 'a.b.c' })
  await page.click('tabella-inbox .bell')
  await page.getByText('You are signed out.').waitFor()
})

test('a page draws its own rows, header and empty list', async () => {
  const page = await open('', { html: '<b slot="empty">all done</b>' })
  await page.getByText('all done').waitFor()
  await page.evaluate(() => {
    document.querySelector('tabella-inbox').renderItem = (message) => {
      const made = document.createElement('em')
      made.textContent = `mine: ${message.message.title}`
      return made
    }
  })
  await publish('one')
  await page.getByText('mine: one').waitFor()
  await publish('two')
  await page.getByText('mine: two').waitFor()
  assert.equal(await page.evaluate(() => document.querySelectorAll('tabella-inbox em').length), 2)
})

test('a page has its own header, and the feed inline, with its own tabs', async () => {
  await publish('one', { category: 'orders' })
  await publish('two', { category: 'news' })
  const categories = JSON.stringify([{ key: 'orders', label: 'Your orders' }])
  const page = await open(`inline categories='${categories}'`, { html: '<h3 slot="header">What is new</h3>', opened: false })
  await row(page, 'two').waitFor()
  await page.getByText('What is new').waitFor()
  assert.equal(await page.locator('tabella-inbox .bell').count(), 0)
  assert.deepEqual(await page.locator('tabella-inbox [role=tab]').allInnerTexts(), ['All2', 'Your orders1'])
  await page.keyboard.press('Escape')
  assert.ok(await row(page, 'two').isVisible())
  await page.locator('tabella-inbox [role=tab]', { hasText: 'Your orders' }).click()
  await untilTitles(page, ['one'])
})

test('the badge counts what was not seen, and the panel opens to the side that is asked for', async () => {
  await publish('one')
  const page = await open('badge="unseen" align="start"', { opened: false })
  await untilBadge(page, '1')
  await page.click('tabella-inbox .bell')
  await untilBadge(page, '')
  assert.equal((await counts()).all.unread, 1)
  const left = (selector) => page.evaluate((selector) => document.querySelector('tabella-inbox').shadowRoot.querySelector(selector).getBoundingClientRect().left, selector)
  assert.ok(await left('.panel') >= await left('.bell'))
})

test('snoozing takes as long as the page says', async () => {
  await publish('one')
  const page = await open('snooze-for="2h"')
  await row(page, 'one').focus()
  await page.keyboard.press('s')
  await untilTitles(page, [])
  const [snoozed] = (await call('GET', 'messages?show=snoozed', undefined, 'ann')).messages
  const hours = (new Date(snoozed.snoozed_until) - Date.now()) / 3_600_000
  assert.ok(hours > 1.9 && hours <= 2, `${hours}`)
})

test('a user whom the backend has signed for comes in, another does not', async () => {
  const { secret } = await fetch(`http://127.0.0.1:${tabella.port}/inbox/${tenant}/secret`, { method: 'POST' }).then((response) => response.json())
  const hmac = createHmac('sha256', secret).update('user:ann').digest('hex')
  await publish('one')
  const page = await open(`hmac="${hmac}"`)
  await row(page, 'one').waitFor()
  await page.evaluate(() => { document.querySelector('tabella-inbox').user = 'bob' })
  await page.getByText('You are signed out.').waitFor()
})

test('a user may have any name', async () => {
  for (const name of ['李小龙', 'Jürgen & co?']) {
    await call('GET', `counts?user=${encodeURIComponent(name)}`)
    await publish(`for ${name}`, { to: name })
    const page = await open('', { change: (text) => text.replace('user="ann"', `user="${name.replace('&', '&amp;')}"`) })
    await row(page, `for ${name}`).waitFor()
    await page.close()
  }
})

test('a row that the page draws is opened by a click, but for what can be clicked in it', async () => {
  await publish('one')
  const page = await open()
  await page.evaluate(() => {
    const element = document.querySelector('tabella-inbox')
    globalThis.seen = []
    element.addEventListener('tabella-inbox-open', (event) => globalThis.seen.push(event.detail.message.title))
    element.renderItem = (message) => {
      const made = document.createElement('p')
      made.innerHTML = '<em></em> <button>mine</button>'
      made.firstChild.textContent = message.message.title
      made.lastChild.onclick = () => globalThis.seen.push('button')
      return made
    }
    element.requestUpdate()
  })
  await page.locator('tabella-inbox button', { hasText: 'mine' }).click()
  await until(page, () => globalThis.seen.join() === 'button')
  await untilBadge(page, '1')
  await page.locator('tabella-inbox em').click()
  await until(page, () => globalThis.seen.join() === 'button,one')
  await untilBadge(page, '')
})

test('inline may be a property, as frameworks set it', async () => {
  const page = await open('', { opened: false })
  await page.evaluate(() => { document.querySelector('tabella-inbox').inline = true })
  await page.locator('tabella-inbox .panel').waitFor()
  assert.equal(await page.evaluate(() => getComputedStyle(document.querySelector('tabella-inbox').shadowRoot.querySelector('.panel')).position), 'static')
})

test('the page may do something else with what is opened', async () => {
  await publish('one', { message: { cta_uri: '/elsewhere' } })
  const page = await open()
  await page.evaluate(() => document.querySelector('tabella-inbox').addEventListener('tabella-inbox-open', (event) => {
    globalThis.opened = event.detail.message.cta_uri
    event.preventDefault()
  }))
  await page.locator('tabella-inbox .row .name').click()
  await until(page, () => globalThis.opened === '/elsewhere')
  await untilBadge(page, '')
  assert.equal(new URL(page.url()).pathname, '/')
})

test('without a network it says so, shows what it has, and goes on after', async () => {
  await publish('one')
  const page = await open()
  await row(page, 'one').waitFor()
  await context.setOffline(true)
  proxy.cut()
  await page.locator('tabella-inbox .notice').waitFor()
  assert.ok(await row(page, 'one').isVisible())
  await publish('two')
  await context.setOffline(false)
  proxy.mend()
  await untilTitles(page, ['two', 'one'])
  await page.locator('tabella-inbox .notice').waitFor({ state: 'detached' })
})

test('the client alone: without an element, and from another page', async () => {
  await publish('one')
  const page = await open('', { opened: false })
  const seen = await page.evaluate(async ([url, tenant]) => {
    const client = new globalThis.Tabella.InboxClient({ url, tenant, inbox: 'bell', user: 'ann' })
    client.start()
    while (client.connection !== 'live' || client.counts.all.total === 0) await new Promise((resolve) => client.addEventListener('change', resolve, { once: true }))
    await client.markRead(client.messages.map((message) => message.id))
    const result = { titles: client.messages.map((message) => message.message.title), unread: client.counts.all.unread }
    client.stop()
    return result
  }, [`http://127.0.0.1:${proxy.port}`, tenant])
  assert.deepEqual(seen, { titles: ['one'], unread: 0 })
  assert.equal((await counts()).all.unread, 0)
})

test('the script is small, cached, and for any page', async () => {
  const url = `http://127.0.0.1:${tabella.port}/inbox.js`
  const response = await fetch(url, { headers: { 'Accept-Encoding': 'gzip' } })
  assert.equal(response.headers.get('content-encoding'), 'gzip')
  assert.ok(Number(response.headers.get('content-length')) <= 20 * 1024, `${response.headers.get('content-length')} bytes`)
  const again = await fetch(url, { headers: { 'If-None-Match': response.headers.get('etag') } })
  assert.equal(again.status, 304)
  const plain = await fetch(url, { headers: { 'Accept-Encoding': 'identity' } })
  assert.equal(plain.headers.get('content-encoding'), null)
  assert.equal(await plain.text(), await response.text())
})

test('the React example, with the package for npm', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tabella-test-'))
  try {
    const tools = process.env.WEB_MODULES
    execFileSync('node', [join(web, 'build.mjs'), '--npm', join(folder, 'node_modules/@tabella/inbox')], { env: { ...process.env, NODE_MODULES: tools } })
    execFileSync(join(tools, '.bin/esbuild'), [join(source, 'examples/bell-react/app.jsx'), '--bundle', '--jsx=automatic', `--outfile=${join(folder, 'app.js')}`, '--log-level=warning'],
      { env: { ...process.env, NODE_PATH: `${join(folder, 'node_modules')}:${join(modules, 'node_modules')}` } })
    const script = readFileSync(join(folder, 'app.js'), 'utf8')
    const settings = `window.tabella = ${JSON.stringify({ url: `http://127.0.0.1:${proxy.port}`, tenant, inbox: 'bell' })};`
    pages.pages.set('/react', readFileSync(join(source, 'examples/bell-react/index.html'), 'utf8'))
    pages.pages.set('/app.js', () => ({ type: 'text/javascript', text: settings + script }))
    pages.pages.set('/api/inbox-token', async () => {
      const response = await fetch(`http://127.0.0.1:${tabella.port}/inbox/${tenant}/tokens`, { method: 'POST', body: JSON.stringify({ user: 'ann' }) })
      return { type: 'application/json', text: JSON.stringify({ token: (await response.json()).token }) }
    })
    const page = await context.newPage()
    await page.goto(`${pages.origin}/react`)
    await until(page, () => document.querySelector('tabella-inbox')?.client?.connection === 'live')
    await publish('for React')
    await untilBadge(page, '1')
    await page.locator('output', { hasText: 'for React' }).waitFor()
  } finally {
    rmSync(folder, { recursive: true })
  }
})

// What the TypeScript compiler says of these files, in a folder of their own.
function compile(files, include, compilerOptions = {}) {
  const modules = process.env.WEB_MODULES
  const folder = mkdtempSync(join(tmpdir(), 'tabella-test-'))
  try {
    const paths = { lit: [join(modules, 'lit')], 'lit/*': [join(modules, 'lit/*')], ...compilerOptions.paths }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ extends: join(web, 'tsconfig.json'), compilerOptions: { ...compilerOptions, paths }, include }))
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
    return spawnSync('node', [join(modules, 'typescript/bin/tsc'), '-p', folder], { encoding: 'utf8' }).stdout
  } finally {
    rmSync(folder, { recursive: true })
  }
}

test('the types are right', () => {
  assert.equal(compile({}, [join(web, 'inbox/*.ts')]), '')
})

test('the package for npm says what types it has', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tabella-test-'))
  try {
    execFileSync('node', [join(web, 'build.mjs'), '--npm', folder], { env: { ...process.env, NODE_MODULES: process.env.WEB_MODULES } })
    const paths = { '@tabella/inbox': [folder] }
    const right = "import { InboxClient, type Message } from '@tabella/inbox'\nconst client = new InboxClient({ url: '', tenant: 'shop', inbox: 'bell', user: 'ann' })\n" +
      'export const first: Message | undefined = client.messages[0]\nvoid client.snooze([\'x\'], \'2h\')\n'
    assert.equal(compile({ 'app.ts': right }, ['app.ts'], { paths }), '')
    assert.match(compile({ 'app.ts': right.replace('tenant:', 'tenants:') }, ['app.ts'], { paths }), /'tenants' does not exist/)
  } finally {
    rmSync(folder, { recursive: true })
  }
})
