// One user's inbox without any looks: a feed, counts and what can be done with them, kept up to date by
// server-sent events. It emits 'change' whenever something is other than before, and 'arrived' with the
// messages that are new.
//
//   const inbox = new InboxClient({ url: 'https://api.example.com', tenant: 'shop', inbox: 'bell', token });
//   inbox.addEventListener('change', () => draw(inbox.messages, inbox.counts));
//   inbox.start();

import { readEvents, type ServerEvent } from './event_stream.js';
import {
  addTally, isShown, noTally, ofCategory, tallyOf, withMarks, type Counts, type Marks, type Message, type Page,
  type Tally, type View,
} from './messages.js';

export interface InboxOptions {
  url?: string; // where Tabella is; this page's own origin
  tenant: string;
  inbox: string;
  user?: string; // where the server lets everybody in, or with an HMAC
  hmac?: string;
  token?: string | (() => string | Promise<string>); // a function is asked again when a token has ended
  pageSize?: number;
}

// 'refused': the credentials are no good. They are tried again after a while, and others at once.
export type Connection = 'connecting' | 'live' | 'offline' | 'refused';

export class InboxError extends Error {
  constructor(readonly status: number, message: string) {
    super(message);
  }
}

const firstPause = 500;
const longestPause = 30_000;
const silence = 45_000; // the server says something every 15 seconds
const staleAfter = 20_000;
const recountWithin = 1_000; // pages that show the same do not ask all at once
const mostIds = 50;

const wait = (milliseconds: number, signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true });
  });

export class InboxClient extends EventTarget {
  messages: readonly Message[] = []; // the newest first
  counts: Counts = { all: noTally, categories: {} };
  view: View = { show: 'active' };
  connection: Connection = 'connecting';
  complete = false; // there are no more behind the last
  loaded = false; // the first page is there

  #options: InboxOptions;
  readonly #base: string;
  #token = '';
  #marks: Marks | undefined;
  #sequence = '';
  #next: string | undefined;
  #loading: Promise<void> | undefined;
  #generation = 0; // of the view: what was asked for another one is dropped
  #running: AbortController | undefined;
  #stream: AbortController | undefined;
  #heardAt = 0;
  #expiry: ReturnType<typeof setTimeout> | undefined;
  // What is told while a page is on its way, which may be older: applied to it once more.
  #crossing: ServerEvent[] | undefined;

  constructor(options: InboxOptions) {
    super();
    this.#options = options;
    const part = encodeURIComponent;
    this.#base = `${(options.url ?? '').replace(/\/$/, '')}/inbox/${part(options.tenant)}/${part(options.inbox)}`;
  }

  start(): void {
    if (this.#running) return;
    this.#running = new AbortController();
    if (typeof document !== 'undefined') {
      const { signal } = this.#running;
      document.addEventListener('visibilitychange', this.#wake, { signal });
      window.addEventListener('online', this.#wake, { signal });
      window.addEventListener('pageshow', this.#wake, { signal });
      window.addEventListener('offline', () => this.#setConnection('offline'), { signal });
    }
    void this.#run(this.#running.signal);
  }

  // Another one of the same user: what is there stays, and what comes is asked for with it.
  setToken(token: NonNullable<InboxOptions['token']>): void {
    this.#options = { ...this.#options, token };
    this.#token = '';
    this.#sleeping?.abort();
    this.#stream?.abort();
  }

  stop(): void {
    this.#running?.abort();
    this.#stream?.abort();
    this.#running = undefined;
    clearTimeout(this.#expiry);
  }

  // --- reading

  async setView(view: View): Promise<void> {
    this.view = view;
    await this.reload();
  }

  async reload(): Promise<void> {
    ++this.#generation;
    this.#loading = undefined;
    this.#next = undefined;
    this.complete = false;
    this.loaded = false;
    try {
      await this.#load(true);
    } catch (error) {
      this.#stream?.abort(); // what runs loads it again, after a pause
      throw error;
    }
  }

  // The next page; at once where one is being loaded, or where there are no more.
  async loadMore(): Promise<void> {
    if (this.complete || !this.loaded) return;
    await this.#load(false);
  }

  #load(first: boolean): Promise<void> {
    this.#loading ??= this.#loadPage(first, this.#generation);
    return this.#loading;
  }

  async #loadPage(first: boolean, generation: number): Promise<void> {
    this.#crossing = [];
    try {
      const query = new URLSearchParams({ limit: String(this.#options.pageSize ?? 30), show: this.view.show });
      if (this.view.category !== undefined) query.set('category', this.view.category);
      if (!first && this.#next) query.set('next', this.#next);
      const page = await this.#request<Page>('GET', `messages?${query}`);
      if (generation !== this.#generation) return;
      this.#next = page.next;
      this.complete = page.next === undefined;
      this.loaded = true;
      if (first) this.#sequence ||= page.sequence;
      this.#takeMarks(page.marks);
      const known = first ? [] : this.messages;
      const ids = new Set(known.map((message) => message.id));
      const fresh = page.messages.filter((message) => !ids.has(message.id));
      this.#setMessages([...known, ...fresh]);
      for (const event of this.#crossing ?? []) this.#apply(event, false);
    } finally {
      if (generation === this.#generation) this.#loading = this.#crossing = undefined;
    }
  }

  // --- doing

  markRead(ids: string[]): Promise<void> {
    return this.#change('read', ids, (message) => ({ ...message, read: true, seen: true }));
  }
  markUnread(ids: string[]): Promise<void> {
    // Behind every mark.
    const marks = this.#marks ? [this.#marks.read, ...Object.values(this.#marks.categories)] : [];
    const behind = Math.max(0, ...marks.map((mark) => mark.own)) + 1;
    return this.#change('unread', ids, (message) => ({ ...message, read: false, unreadat: behind }));
  }
  archive(ids: string[]): Promise<void> {
    return this.#change('archive', ids, (message) => ({ ...message, archived: true }));
  }
  unarchive(ids: string[]): Promise<void> {
    return this.#change('unarchive', ids, (message) => ({ ...message, archived: false }));
  }
  snooze(ids: string[], time: string): Promise<void> {
    return this.#change('snooze', ids, (message) => ({ ...message, snoozed_until: 'soon' }), { for: time });
  }
  unsnooze(ids: string[]): Promise<void> {
    return this.#change('unsnooze', ids, ({ snoozed_until: _, ...message }) => message);
  }

  async markAllRead(category?: string): Promise<void> {
    const of = (message: Message) => category === undefined || message.category === category;
    const marked = Object.entries(this.counts.categories).map(([name, tally]): [string, Tally] =>
      [name, category === undefined || name === category ? { ...tally, unread: 0, unseen: 0 } : tally]);
    const gone = category === undefined ? this.counts.all : (ofCategory(this.counts.categories, category) ?? noTally);
    const all = { ...this.counts.all, unread: this.counts.all.unread - gone.unread, unseen: this.counts.all.unseen - gone.unseen };
    const undo = this.#undo();
    this.counts = { all, categories: Object.fromEntries(marked) };
    this.#setMessages(this.messages.map((message) => (of(message) ? { ...message, read: true, seen: true } : message)));
    await this.#send('read', { all: true, ...(category === undefined ? {} : { category }) }, undo);
  }

  async markSeen(): Promise<void> {
    if (this.counts.all.unseen === 0 || this.#seeing) return;
    this.#seeing = true;
    try {
      await this.#request('PUT', 'messages/seen', {}); // nothing is shown by it that would have to be put right
    } finally {
      this.#seeing = false;
    }
  }
  #seeing = false;

  // Shows again what is shown now.
  #undo(): () => void {
    const { messages, counts } = this;
    return () => {
      this.counts = counts;
      this.#setMessages(messages);
    };
  }

  // At once on this page, then on the server; if that fails, the page shows what was there before, and what the
  // server has once that can be had.
  async #change(what: string, ids: string[], change: (message: Message) => Message, more: object = {}): Promise<void> {
    const chosen = new Set(ids);
    const undo = this.#undo();
    let { all, categories } = this.counts;
    const changed = this.messages.map((before) => {
      if (!chosen.has(before.id)) return before;
      const after = change(before);
      for (const [message, times] of [[before, -1], [after, 1]] as const) {
        all = addTally(all, tallyOf(message), times);
        const category = message.category;
        if (category !== undefined)
          categories = { ...categories, [category]: addTally(ofCategory(categories, category) ?? noTally, tallyOf(message), times) };
      }
      return after;
    });
    this.counts = { all, categories };
    this.#setMessages(changed);
    for (let at = 0; at < ids.length; at += mostIds) await this.#send(what, { ids: ids.slice(at, at + mostIds), ...more }, undo);
  }

  async #send(what: string, body: object, undo: () => void): Promise<void> {
    try {
      await this.#request('PUT', `messages/${what}`, body);
    } catch (error) {
      undo();
      this.#stream?.abort(); // a new one tells the counts anew
      void this.reload().catch(() => {});
      throw error;
    }
  }

  // --- what comes by itself

  async #run(signal: AbortSignal): Promise<void> {
    let pause = firstPause;
    while (!signal.aborted) {
      try {
        if (!this.loaded) await this.#load(true);
        if (signal.aborted) return;
        await this.#listen(signal, () => (pause = firstPause));
      } catch (error) {
        if (error instanceof InboxError && (error.status === 401 || error.status === 403)) {
          this.#setConnection('refused');
          this.dispatchEvent(new CustomEvent('error', { detail: error }));
          await wait(longestPause, this.#wakeable(signal));
        }
      }
      if (signal.aborted) return;
      this.#setConnection(globalThis.navigator?.onLine === false ? 'offline' : 'connecting');
      await wait(pause * (0.5 + Math.random() / 2), this.#wakeable(signal));
      pause = Math.min(pause * 2, longestPause);
    }
  }

  #sleeping: AbortController | undefined;
  #wakeable(signal: AbortSignal): AbortSignal {
    this.#sleeping = new AbortController();
    signal.addEventListener('abort', () => this.#sleeping?.abort(), { once: true });
    return this.#sleeping.signal;
  }

  // A page that was asleep does not notice that its connection is gone.
  #wake = (): void => {
    if (typeof document !== 'undefined' && document.visibilityState === 'hidden') return;
    this.#sleeping?.abort();
    if (Date.now() - this.#heardAt > staleAfter) this.#stream?.abort();
  };

  async #listen(signal: AbortSignal, heard: () => void): Promise<void> {
    const stream = new AbortController();
    this.#stream = stream;
    const abort = () => stream.abort();
    signal.addEventListener('abort', abort, { once: true });
    let watchdog: ReturnType<typeof setTimeout> | undefined;
    const alive = () => {
      this.#heardAt = Date.now();
      clearTimeout(watchdog);
      watchdog = setTimeout(abort, silence);
    };
    alive();
    let renewal: ReturnType<typeof setTimeout> | undefined;
    try {
      const query = new URLSearchParams({ 'last-event-id': this.#sequence });
      const response = await this.#fetch('GET', `live?${query}`, undefined, stream.signal);
      // A stream ends with its token: it is begun anew, with a new one, before that.
      const renewIn = this.#renewAt() - Date.now();
      if (renewIn > 0) renewal = setTimeout(abort, Math.min(renewIn, 2 ** 31 - 1));
      this.#setConnection('live');
      for await (const event of readEvents(response.body!, () => (alive(), this.#setConnection('live')))) {
        heard();
        await this.#take(event);
        if (event.id) this.#sequence = event.id;
      }
    } finally {
      clearTimeout(watchdog);
      clearTimeout(renewal);
      signal.removeEventListener('abort', abort);
      stream.abort();
    }
  }

  async #take(event: ServerEvent): Promise<void> {
    if (event.event === 'reset') return this.reload();
    this.#crossing?.push(event);
    this.#apply(event, true);
  }

  #apply(event: ServerEvent, isNews: boolean): void {
    const data: unknown = JSON.parse(event.data);
    switch (event.event) {
      case 'message': return this.#takeMessage(data as Message, isNews);
      case 'removed': return this.#setMessages(this.messages.filter((message) => message.id !== (data as Message).id));
      case 'marks':
        this.#takeMarks(data as Marks);
        return this.#setMessages(this.messages);
      case 'counts':
        this.counts = data as Counts;
        return this.#changed();
    }
  }

  #takeMessage(message: Message, isNews: boolean): void {
    const at = this.messages.findIndex((other) => other.id <= message.id);
    const there = at >= 0 && this.messages[at]!.id === message.id ? this.messages[at] : undefined;
    if (there && there.changed > message.changed) return;
    const place = at < 0 ? this.messages.length : at;
    // What belongs behind the last that is loaded comes with its page.
    if (!there && at < 0 && !this.complete && (this.#next === undefined || message.id < this.#next)) return;
    // One that comes back is not new.
    const isNew = isNews && !there && !message.read && message.arrived === message.changed && isShown(message, this.view);
    this.#setMessages([...this.messages.slice(0, place), message, ...this.messages.slice(there ? place + 1 : place)]);
    if (isNew) this.dispatchEvent(new CustomEvent<Message[]>('arrived', { detail: [message] }));
  }

  // Of two answers that crossed, the newer.
  #takeMarks(marks: Marks): void {
    if (!this.#marks || marks.at >= this.#marks.at) this.#marks = marks;
  }

  #setMessages(messages: readonly Message[]): void {
    const now = Date.now() / 1000;
    const marks = this.#marks;
    this.messages = messages
      .map((message) => (marks ? withMarks(message, marks) : message))
      .filter((message) => message.expiredat > now && isShown(message, this.view));
    this.#expireNext(now);
    this.#changed();
  }

  // Expired is expired at its second.
  #expireNext(now: number): void {
    clearTimeout(this.#expiry);
    const next = this.messages.reduce((least, message) => Math.min(least, message.expiredat), Infinity);
    if (next === Infinity || !this.#running) return;
    const inMilliseconds = Math.min((next - now) * 1000 + 10, 3_600_000);
    this.#expiry = setTimeout(() => {
      const before = this.messages.length;
      this.#setMessages(this.messages);
      if (this.messages.length < before) this.#recount();
    }, inMilliseconds);
  }

  #recount(): void {
    setTimeout(() => void this.#count(), Math.random() * recountWithin);
  }

  // What expires counts no more; it is not told of, and the server's clock decides.
  async #count(): Promise<void> {
    if (!this.#running) return;
    const before = this.counts;
    try {
      const counts = await this.#request<Counts>('GET', 'counts');
      if (this.counts !== before) return this.#recount(); // something has happened meanwhile
      this.counts = counts;
      this.#changed();
    } catch {
      // the next connection tells them
    }
  }

  #setConnection(connection: Connection): void {
    if (this.connection === connection) return;
    this.connection = connection;
    this.#changed();
  }

  #changed(): void {
    this.dispatchEvent(new Event('change'));
  }

  // --- requests

  async #request<T>(method: string, path: string, body?: object): Promise<T> {
    const response = await this.#fetch(method, path, body);
    return (await response.json()) as T;
  }

  // A token that has ended is asked for once more.
  async #fetch(method: string, path: string, body?: object, signal?: AbortSignal): Promise<Response> {
    for (let tries = 0; ; ++tries) {
      const response = await fetch(this.#address(path), {
        method,
        headers: await this.#headers(tries > 0, body !== undefined),
        cache: 'no-store',
        credentials: 'same-origin',
        keepalive: method === 'PUT', // a link that marks as read leaves the page
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        ...(signal ? { signal } : {}),
      });
      if (response.ok) return response;
      const again = response.status === 401 && tries === 0 && typeof this.#options.token === 'function';
      if (again) continue;
      const problem = await response.json().catch(() => ({}));
      throw new InboxError(response.status, problem.error ?? response.statusText);
    }
  }

  // A name that is not ASCII would not get through in a header.
  #address(path: string): string {
    const { user } = this.#options;
    if (!user) return `${this.#base}/${path}`;
    return `${this.#base}/${path}${path.includes('?') ? '&' : '?'}user=${encodeURIComponent(user)}`;
  }

  async #headers(anew: boolean, json: boolean): Promise<Record<string, string>> {
    const { token, hmac } = this.#options;
    const headers: Record<string, string> = json ? { 'Content-Type': 'application/json' } : {};
    if (typeof token === 'function') {
      if (anew || !this.#token) this.#token = await token();
    } else if (token) {
      this.#token ||= token;
      await this.#refreshInTime();
    }
    if (this.#token) headers['Authorization'] = `Bearer ${this.#token}`;
    if (hmac) headers['X-Inbox-Hmac'] = hmac;
    return headers;
  }

  // When a token that is given as text is to become a new one; milliseconds.
  #renewAt(): number {
    const { iat, exp } = typeof this.#options.token === 'string' ? claimsOf(this.#token) : {};
    return iat && exp ? (exp - (exp - iat) / 4) * 1000 : 0;
  }

  // A token that was made by the server becomes a new one before it ends.
  async #refreshInTime(): Promise<void> {
    const renewAt = this.#renewAt();
    if (renewAt === 0 || Date.now() < renewAt || Date.now() > (claimsOf(this.#token).exp ?? 0) * 1000) return;
    const tenant = this.#base.slice(0, this.#base.lastIndexOf('/'));
    const old = this.#token;
    const response = await fetch(`${tenant}/tokens/refresh`, { method: 'POST', headers: { Authorization: `Bearer ${old}` } });
    if (response.ok && this.#token === old) this.#token = ((await response.json()) as { token: string }).token;
  }
}

function claimsOf(token: string): { iat?: number; exp?: number } {
  try {
    const claims = token.split('.')[1]!.replace(/-/g, '+').replace(/_/g, '/');
    return JSON.parse(atob(claims));
  } catch {
    return {};
  }
}
