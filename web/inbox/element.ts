// <tabella-inbox>: a bell with a badge, and the feed behind it.
//
//   <script src="https://api.example.com/inbox.js"></script>
//   <tabella-inbox url="https://api.example.com" tenant="shop" inbox="bell" token="…"></tabella-inbox>
//
// docs/inbox.md, "The bell", has its attributes, slots, parts, custom properties and events.

import { LitElement, html, nothing, svg, type PropertyValues, type TemplateResult } from 'lit';
import { repeat } from 'lit/directives/repeat.js';
import { styleMap } from 'lit/directives/style-map.js';
import { InboxClient, type InboxOptions } from './client.js';
import { ofCategory, safeLink, type Message, type Show } from './messages.js';
import { styles } from './styles.js';
import { ago, english, plural, type Plural, type Texts } from './texts.js';

const shows: Show[] = ['active', 'unread', 'snoozed', 'archived'];
const rowsBeyond = 6; // rows that are drawn above and below what can be seen
const toastTime = 7_000;
const mostBadge = 999;

const icon = (path: TemplateResult) => html`<svg viewBox="0 0 24 24" aria-hidden="true">${path}</svg>`;
const bellIcon = icon(svg`<path d="M6 9a6 6 0 0 1 12 0c0 5 2 6 2 7H4c0-1 2-2 2-7ZM10 20a2 2 0 0 0 4 0"/>`);
const checkAllIcon = icon(svg`<path d="m2 12 5 5 9-10M12 16l1 1 9-10"/>`);
const checkIcon = icon(svg`<path d="m5 12 5 5 9-10"/>`);
const dotIcon = icon(svg`<circle cx="12" cy="12" r="5" fill="currentColor"/>`);
const archiveIcon = icon(svg`<path d="M3 4h18v4H3zM5 8v12h14V8M10 12h4"/>`);
const backIcon = icon(svg`<path d="M9 14 4 9l5-5M4 9h10a6 6 0 0 1 0 12h-3"/>`);
const snoozeIcon = icon(svg`<circle cx="12" cy="12" r="9"/><path d="M12 7v5l3 3"/>`);
const closeIcon = icon(svg`<path d="m6 6 12 12M18 6 6 18"/>`);

interface Category {
  key: string;
  label?: string;
}

// What can be clicked by itself in a row that the page draws.
const ownControls = 'a, button, input, select, textarea, label, summary, option, [role=button], [role=link], [role=menuitem], [role=checkbox], [role=switch], [contenteditable], [onclick]';

export class TabellaInbox extends LitElement {
  static override styles = styles;
  static override properties = {
    url: {},
    tenant: {},
    inbox: {},
    user: {},
    hmac: {},
    token: {},
    badge: {},
    snoozeFor: { attribute: 'snooze-for' },
    open: { type: Boolean, reflect: true },
    inline: { type: Boolean, reflect: true },
    texts: { type: Object },
    categories: { type: Array },
    renderItem: { attribute: false },
  };

  url = '';
  tenant = '';
  inbox = '';
  user = '';
  hmac = '';
  token: NonNullable<InboxOptions['token']> = '';
  badge: 'unread' | 'unseen' = 'unread';
  snoozeFor = '1h';
  open = false;
  inline = false;
  texts: Partial<Texts> = {};
  categories: Category[] | undefined; // which tabs there are; otherwise those that there are messages of
  renderItem: ((message: Message) => Node | undefined) | undefined;

  client: InboxClient | undefined;

  #activeId = ''; // the message that the keyboard is at
  #active = 0; // its row
  #top = ''; // the message that is at the top of what can be seen, and how far above that it begins
  #topOffset = 0;
  #fresh = 0; // messages that came while somebody was reading further down
  #first = 0; // of the rows that can be seen
  #visible = 12;
  #rowHeight = 76;
  #said = '';
  #toSay = 0;
  #sayTimer: ReturnType<typeof setTimeout> | undefined;
  #toast: { text: string; undo?: () => void } | undefined;
  #toastTimer: ReturnType<typeof setTimeout> | undefined;
  #focusRow = false;
  #clock: ReturnType<typeof setInterval> | undefined;

  override connectedCallback(): void {
    super.connectedCallback();
    document.addEventListener('pointerdown', this.#outside);
    document.addEventListener('keydown', this.#onDocumentKey);
    this.#clock = setInterval(() => this.#panelIsOpen && this.requestUpdate(), 30_000);
    if (this.hasUpdated) this.#connect();
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    document.removeEventListener('pointerdown', this.#outside);
    document.removeEventListener('keydown', this.#onDocumentKey);
    clearInterval(this.#clock);
    clearTimeout(this.#toastTimer);
    clearTimeout(this.#sayTimer);
    this.client?.stop();
    this.client = undefined;
  }

  override willUpdate(changed: PropertyValues): void {
    const settings = ['url', 'tenant', 'inbox', 'user', 'hmac'];
    const first = changed.has('token') && (!this.client || !changed.get('token'));
    if (first || settings.some((name) => changed.has(name))) this.#connect();
    else if (changed.has('token')) this.client?.setToken(this.token);
    this.#findActive();
  }

  override updated(changed: PropertyValues): void {
    if (changed.has('open') && changed.get('open') !== undefined) this.#wasOpened();
    this.#keepPlace();
    this.#onScroll();
    const row = this.renderRoot.querySelector<HTMLElement>('.row');
    if (row && row.offsetHeight > 0 && row.offsetHeight !== this.#rowHeight) {
      this.#rowHeight = row.offsetHeight;
      this.requestUpdate();
    }
    if (this.#focusRow) {
      this.#focusRow = false;
      this.renderRoot.querySelector<HTMLElement>(`.row[data-at="${this.#active}"]`)?.focus();
    }
    if (this.renderItem) this.#projectItems();
  }

  show(): void {
    this.open = true;
  }
  hide(): void {
    this.open = false;
  }

  // --- what comes

  #connect(): void {
    this.client?.stop();
    this.client = undefined;
    this.#activeId = this.#top = '';
    this.#active = this.#first = this.#fresh = 0;
    if (!this.isConnected || !this.tenant || !this.inbox || (!this.token && !this.user)) return;
    const { url, tenant, inbox, user, hmac, token } = this;
    const client = new InboxClient({ url, tenant, inbox, user, hmac, token });
    client.addEventListener('change', () => {
      if (this.#panelIsOpen && document.visibilityState === 'visible') void client.markSeen().catch(() => {});
      this.requestUpdate();
    });
    client.addEventListener('arrived', (event) => this.#arrived((event as CustomEvent<Message[]>).detail));
    this.client = client;
    client.start();
  }

  #arrived(messages: Message[]): void {
    // What one reads does not move (#keepPlace): what came above it is behind the pill.
    const isAbove = (message: Message) => this.#top !== '' && message.id > this.#top;
    if (this.#isScrolled) this.#fresh += messages.filter(isAbove).length;
    this.#toSay += messages.length;
    clearTimeout(this.#sayTimer);
    this.#sayTimer = setTimeout(() => {
      this.#said = this.#plural('arrived', this.#toSay);
      this.#toSay = 0;
      this.requestUpdate();
      // The same again is heard only if there was something else in between.
      this.#sayTimer = setTimeout(() => ((this.#said = ''), this.requestUpdate()), 3_000);
    }, 300);
    this.dispatchEvent(new CustomEvent('tabella-inbox-arrived', { detail: messages, bubbles: true, composed: true }));
  }

  // --- what people do

  #outside = (event: Event): void => {
    if (this.open && !this.inline && !event.composedPath().includes(this)) this.open = false;
  };

  #onDocumentKey = (event: KeyboardEvent): void => {
    if (event.key === 'Escape' && this.open && !this.inline) this.open = false;
  };

  #wasOpened(): void {
    if (this.open) {
      this.renderRoot.querySelector<HTMLElement>('h2')?.focus();
      void this.client?.markSeen().catch(() => {});
    } else {
      this.renderRoot.querySelector<HTMLElement>('.bell')?.focus();
    }
  }

  #act(doing: Promise<void>, text: string, undo?: () => Promise<void>): void {
    doing.then(
      () => this.#showToast(text, undo && (() => this.#act(undo(), ''))),
      () => this.#showToast(this.#text('failed')),
    );
  }

  #showToast(text: string, undo?: () => void): void {
    clearTimeout(this.#toastTimer);
    this.#toast = text ? { text, ...(undo ? { undo } : {}) } : undefined;
    if (text) this.#toastTimer = setTimeout(() => this.#showToast(''), toastTime);
    this.requestUpdate();
  }

  #toggleRead(message: Message): void {
    const { client } = this;
    if (!client) return;
    if (message.read) this.#act(client.markUnread([message.id]), '');
    else this.#act(client.markRead([message.id]), this.#text('didRead'), () => client.markUnread([message.id]));
  }

  #toggleArchived(message: Message): void {
    const { client } = this;
    if (!client) return;
    if (message.archived)
      this.#act(client.unarchive([message.id]), this.#text('didUnarchive'), () => client.archive([message.id]));
    else this.#act(client.archive([message.id]), this.#text('didArchive'), () => client.unarchive([message.id]));
  }

  #snooze(message: Message): void {
    const { client } = this;
    if (!client) return;
    if (message.snoozed_until) return this.#act(client.unsnooze([message.id]), this.#text('didUnarchive'));
    this.#act(client.snooze([message.id], this.snoozeFor), this.#text('didSnooze'), async () => {
      await client.unsnooze([message.id]);
      if (message.read) await client.markRead([message.id]); // what comes back is unread
    });
  }

  // The page may do something else with it: tabella-inbox-open can be cancelled.
  #openMessage(message: Message, event: Event): void {
    if (!message.read) void this.client?.markRead([message.id]).catch(() => {});
    const opened = this.dispatchEvent(
      new CustomEvent('tabella-inbox-open', { detail: message, bubbles: true, composed: true, cancelable: true }),
    );
    if (!opened) event.preventDefault();
  }

  // What the page has drawn into a row opens it, but for what can be clicked by itself.
  #onOwnRow(event: Event): void {
    if (event.defaultPrevented) return;
    const slot = event.currentTarget as HTMLSlotElement;
    const inside = event.composedPath().slice(0, event.composedPath().indexOf(slot));
    const isOwn = slot.assignedNodes().length > 0 && !inside.some((node) => node instanceof Element && node.matches(ownControls));
    if (isOwn) slot.querySelector<HTMLElement>('.name')?.click();
  }

  #onListKey(event: KeyboardEvent): void {
    const messages = this.client?.messages ?? [];
    const target = event.target as HTMLElement;
    const onRow = target.classList.contains('row');
    // What the page has drawn into a row has keys of its own.
    if (!onRow && !target.closest('.list')) return;
    const message = messages[this.#active];
    const page = Math.max(1, this.#visible - 1);
    const moves: Record<string, number> = {
      ArrowDown: this.#active + 1, ArrowUp: this.#active - 1, j: this.#active + 1, k: this.#active - 1,
      PageDown: this.#active + page, PageUp: this.#active - page, Home: 0, End: messages.length - 1,
    };
    const to = moves[event.key];
    if (to !== undefined && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      this.#moveTo(to);
    } else if (!message || !onRow || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    } else if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      this.renderRoot.querySelector<HTMLElement>(`.row[data-at="${this.#active}"] .name`)?.click();
    } else if (event.key === 'Delete' || event.key === 'e') {
      this.#toggleArchived(message);
      this.#moveTo(this.#active);
    } else if (event.key === 's' && !message.archived) {
      this.#snooze(message);
      this.#moveTo(this.#active);
    } else if (event.key === 'u') {
      this.#toggleRead(message);
    }
  }

  #moveTo(at: number): void {
    const last = (this.client?.messages.length ?? 0) - 1;
    this.#active = Math.max(0, Math.min(at, last));
    this.#activeId = this.client?.messages[this.#active]?.id ?? '';
    const list = this.#list;
    if (list) {
      const top = this.#active * this.#rowHeight;
      if (top < list.scrollTop) list.scrollTop = top;
      else if (top + this.#rowHeight > list.scrollTop + list.clientHeight) list.scrollTop = top + this.#rowHeight - list.clientHeight;
    }
    this.#focusRow = true;
    this.requestUpdate();
  }

  #onTabKey(event: KeyboardEvent, keys: (string | undefined)[]): void {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const forward = getComputedStyle(this).direction === 'rtl' ? -step : step;
    const at = (keys.indexOf(this.client?.view.category) + forward + keys.length) % keys.length;
    this.#choose(this.client?.view.show ?? 'active', keys[at]);
    void this.updateComplete.then(() => this.renderRoot.querySelectorAll<HTMLElement>('.tab')[at]?.focus());
  }

  #choose(show: Show, category: string | undefined): void {
    this.#active = this.#first = this.#fresh = 0;
    this.#activeId = this.#top = '';
    if (this.#list) this.#list.scrollTop = 0;
    this.client?.setView({ show, category }).catch(() => this.#showToast(this.#text('failed')));
    this.requestUpdate();
  }

  #onScroll(): void {
    const list = this.#list;
    if (!list) return;
    const first = Math.floor(list.scrollTop / this.#rowHeight);
    this.#top = this.client?.messages[first]?.id ?? '';
    this.#topOffset = list.scrollTop - first * this.#rowHeight;
    const visible = Math.ceil(list.clientHeight / this.#rowHeight) + 1;
    if (!this.#isScrolled && this.#fresh > 0) {
      this.#fresh = 0;
      this.requestUpdate();
    }
    if (first !== this.#first || visible !== this.#visible) {
      this.#first = first;
      this.#visible = visible;
      this.requestUpdate();
    }
    this.#loadAhead();
  }

  #loadAhead(): void {
    const { client } = this;
    if (client && !client.complete && this.#first + this.#visible + 10 > client.messages.length) void client.loadMore().catch(() => {});
  }

  get #isScrolled(): boolean {
    return (this.#list?.scrollTop ?? 0) > this.#rowHeight / 2;
  }

  // Rows that come or go above what one reads do not move it.
  #keepPlace(): void {
    const list = this.#list;
    if (!list || !this.#isScrolled || !this.#top) return;
    const at = this.client?.messages.findIndex((message) => message.id <= this.#top) ?? -1;
    const scrollTop = at * this.#rowHeight + this.#topOffset;
    if (at >= 0 && Math.abs(list.scrollTop - scrollTop) >= 1) list.scrollTop = scrollTop;
  }

  // Where the message that the keyboard is at is now; the one in its place, if it is gone.
  #findActive(): void {
    const messages = this.client?.messages ?? [];
    const at = messages.findIndex((message) => message.id === this.#activeId);
    this.#active = at >= 0 ? at : Math.max(0, Math.min(this.#active, messages.length - 1));
    this.#activeId = messages[this.#active]?.id ?? '';
  }

  // --- what is drawn

  get #list(): HTMLElement | null {
    return this.renderRoot?.querySelector('.list') ?? null;
  }
  get #panelIsOpen(): boolean {
    return this.open || this.inline;
  }
  get #language(): string {
    const language = this.closest('[lang]')?.getAttribute('lang') || navigator.language || 'en';
    try {
      return Intl.getCanonicalLocales(language)[0] ?? 'en';
    } catch {
      return navigator.language || 'en'; // "en_US" is none
    }
  }
  #text(name: { [K in keyof Texts]: Texts[K] extends string ? K : never }[keyof Texts]): string {
    return this.texts?.[name] ?? english[name];
  }
  #plural(name: { [K in keyof Texts]: Texts[K] extends Plural ? K : never }[keyof Texts], count: number): string {
    return plural(this.texts?.[name] ?? english[name], count, this.#language);
  }

  override render() {
    return html`${this.inline ? nothing : this.#renderBell()}
      <div class="for-readers" role="status" aria-live="polite">${this.#said}</div>
      ${this.#panelIsOpen ? this.#renderPanel() : nothing}`;
  }

  #renderBell() {
    const count = this.client?.counts.all[this.badge] ?? 0;
    const label = count > 0 ? this.#plural('open', count) : this.#text('title');
    const shown = count > mostBadge ? `${mostBadge}+` : new Intl.NumberFormat(this.#language).format(count);
    return html`<button class="bell" part="bell" aria-haspopup="dialog" aria-expanded=${this.open} aria-label=${label}
      @click=${() => (this.open = !this.open)}>
      <slot name="bell">${bellIcon}</slot>
      ${count > 0 ? html`<span class="badge" part="badge" aria-hidden="true">${shown}</span>` : nothing}
    </button>`;
  }

  #renderPanel() {
    const { client } = this;
    const view = client?.view ?? { show: 'active' };
    const unread = view.category === undefined ? client?.counts.all.unread : ofCategory(client?.counts.categories ?? {}, view.category)?.unread;
    return html`<div class="panel" part="panel" role=${this.inline ? 'region' : 'dialog'} aria-label=${this.#text('title')}>
      <slot name="header">
        <header part="header">
          <h2 tabindex="-1">${this.#text('title')}</h2>
          <select part="show" aria-label=${this.#text('show')} @change=${(event: Event) => this.#choose((event.target as HTMLSelectElement).value as Show, view.category)}>
            ${shows.map((show) => html`<option value=${show} .selected=${show === view.show}>${this.#text(show as 'active')}</option>`)}
          </select>
          <button class="icon" part="mark-all" title=${this.#text('markAll')} aria-label=${this.#text('markAll')} ?disabled=${!unread}
            @click=${() => client && this.#act(client.markAllRead(view.category), '')}>${checkAllIcon}</button>
          ${this.inline ? nothing : html`<button class="icon" part="close" title=${this.#text('close')} aria-label=${this.#text('close')} @click=${() => (this.open = false)}>${closeIcon}</button>`}
        </header>
      </slot>
      ${this.#renderTabs()} ${this.#renderNotice()}
      <div class="body">
        ${this.#fresh > 0 ? html`<button class="pill" part="pill" @click=${this.#toTop}>${this.#plural('pill', this.#fresh)}</button>` : nothing}
        ${this.#renderList()}
        ${this.#toast ? html`<div class="toast" part="toast" role="status"><span>${this.#toast.text}</span>
          ${this.#toast.undo ? html`<button part="undo" @click=${this.#toast.undo}>${this.#text('undo')}</button>` : nothing}</div>` : nothing}
      </div>
    </div>`;
  }

  #toTop = (): void => {
    this.#fresh = 0;
    if (this.#list) this.#list.scrollTop = 0;
    this.requestUpdate();
  };

  #renderTabs() {
    const { client } = this;
    const counts = client?.counts.categories ?? {};
    const categories: Category[] = this.categories ?? Object.keys(counts).sort().map((key) => ({ key }));
    if (categories.length === 0) return nothing;
    const chosen = client?.view.category;
    const keys = [undefined, ...categories.map((category) => category.key)];
    const tab = (key: string | undefined, label: string, unread: number) => html`<button class="tab" part="tab" role="tab" aria-selected=${key === chosen}
      aria-controls="list" tabindex=${key === chosen ? 0 : -1} @click=${() => this.#choose(client?.view.show ?? 'active', key)}>${label}${unread > 0 ? html`<span>${unread}</span>` : nothing}</button>`;
    return html`<div class="tabs" part="tabs" role="tablist" aria-label=${this.#text('title')} @keydown=${(event: KeyboardEvent) => this.#onTabKey(event, keys)}>
      ${tab(undefined, this.#text('all'), client?.counts.all.unread ?? 0)}
      ${categories.map(({ key, label }) => tab(key, label ?? key, ofCategory(counts, key)?.unread ?? 0))}
    </div>`;
  }

  #renderNotice() {
    const { client } = this;
    if (!client || client.connection === 'live' || (client.connection === 'connecting' && !client.loaded)) return nothing;
    return html`<div class="notice" part="notice" role="status">${this.#text(client.connection as 'offline')}</div>`;
  }

  #renderList() {
    const messages = this.client?.messages ?? [];
    if (messages.length === 0) {
      const text = this.client && (!this.client.loaded || !this.client.complete) ? this.#text('loading') : undefined;
      queueMicrotask(() => this.#loadAhead());
      return html`<div class="list" id="list" part="list" tabindex="0" role="region" aria-label=${this.#text('title')}>${text
        ? html`<div class="empty">${text}</div>`
        : html`<slot name="empty"><div class="empty" part="empty">${bellIcon}<strong>${this.#text('empty')}</strong><span>${this.#text('emptyHint')}</span></div></slot>`}</div>`;
    }
    const rows: number[] = [];
    for (let at = Math.max(0, this.#first - rowsBeyond); at < Math.min(messages.length, this.#first + this.#visible + rowsBeyond); ++at) rows.push(at);
    // Where the keyboard is; in its place, so that it need not be moved, which would take the focus from it.
    if (this.#active < (rows[0] ?? 0)) rows.unshift(this.#active);
    else if (!rows.includes(this.#active)) rows.push(this.#active);
    queueMicrotask(() => this.#loadAhead());
    const now = Date.now();
    return html`<div class="list" id="list" part="list" role="feed" aria-label=${this.#text('title')} aria-busy=${!this.client?.loaded}
      tabindex="-1" @scroll=${this.#onScroll} @keydown=${this.#onListKey}>
      <div class="rows" style=${styleMap({ height: `${messages.length * this.#rowHeight}px` })}>
        ${repeat(rows, (at) => messages[at]!.id, (at) => this.#renderRow(messages[at]!, at, now))}
      </div>
    </div>`;
  }

  #renderRow(message: Message, at: number, now: number) {
    const total = this.client?.complete ? this.client.messages.length : -1;
    const created = new Date(message.created);
    const text = typeof message.message.body === 'string' ? message.message.body : '';
    const href = safeLink(message.message.cta_uri, location.href);
    const title = html`${message.read ? nothing : html`<span class="for-readers">${this.#text('isUnread')}. </span>`}${message.message.title}`;
    const opens = (event: Event) => this.#openMessage(message, event);
    const readText = this.#text(message.read ? 'markUnread' : 'markRead');
    const archiveText = this.#text(message.archived ? 'unarchive' : 'archive');
    const action = (label: string, image: TemplateResult, act: () => void) => html`<button class="icon" part="action" tabindex="-1" title=${label} aria-label=${label} @click=${act}>${image}</button>`;
    return html`<article class="row ${message.read ? '' : 'unread'}" part="item ${message.read ? 'item-read' : 'item-unread'}" data-at=${at}
      aria-posinset=${at + 1} aria-setsize=${total} aria-labelledby="title-${message.id}" tabindex=${at === this.#active ? 0 : -1}
      style=${styleMap({ top: `${at * this.#rowHeight}px` })} @focusin=${() => this.#setActive(message.id)}>
      <slot name="item-${message.id}" @click=${(event: Event) => this.#onOwnRow(event)}>
        <span class="dot" part="dot"></span>
        <div class="content">
          <div class="line">
            ${href
              ? html`<a class="name" part="title" id="title-${message.id}" href=${href} tabindex="-1" @click=${opens}>${title}</a>`
              : html`<button class="name" part="title" id="title-${message.id}" tabindex="-1" @click=${opens}>${title}</button>`}
            <time part="time" datetime=${message.created} title=${created.toLocaleString(this.#language)}>${ago(created, now, this.#language)}</time>
          </div>
          ${text ? html`<p class="text" part="text">${text}</p>` : nothing}
        </div>
      </slot>
      <div class="actions" part="actions">
        ${action(readText, message.read ? dotIcon : checkIcon, () => this.#toggleRead(message))}
        ${message.archived ? nothing : action(this.#text(message.snoozed_until ? 'unarchive' : 'snooze'), message.snoozed_until ? backIcon : snoozeIcon, () => this.#snooze(message))}
        ${action(archiveText, message.archived ? backIcon : archiveIcon, () => this.#toggleArchived(message))}
      </div>
    </article>`;
  }

  #setActive(id: string): void {
    if (this.#activeId === id) return;
    this.#activeId = id;
    this.requestUpdate();
  }

  // What the page draws for the rows that can be seen stands in the page, in the slots of its rows.
  #projectItems(): void {
    const wanted = new Set<string>();
    for (const slot of this.renderRoot.querySelectorAll<HTMLSlotElement>('.row slot')) {
      wanted.add(slot.name);
      const message = this.client?.messages.find((one) => `item-${one.id}` === slot.name);
      const there = this.querySelector<HTMLElement>(`:scope > [slot="${slot.name}"]`);
      const version = message && `${message.changed}${message.read}`;
      if (!message || there?.dataset['version'] === version) continue;
      there?.remove();
      const made = this.renderItem?.(message);
      if (!made) continue;
      const holder = document.createElement('div');
      holder.slot = slot.name;
      holder.dataset['version'] = version;
      holder.append(made);
      this.append(holder);
    }
    for (const child of [...this.children])
      if (child.slot.startsWith('item-') && child instanceof HTMLElement && child.dataset['version'] && !wanted.has(child.slot)) child.remove();
  }
}

declare global {
  interface HTMLElementTagNameMap {
    'tabella-inbox': TabellaInbox;
  }
}
