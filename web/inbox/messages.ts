// What the inbox says: messages, counts, marks, as they come over HTTP.

export interface Content {
  title: string;
  body?: unknown;
  cta_uri?: string;
  [name: string]: unknown;
}

export interface Message {
  id: string;
  created: string;
  category?: string;
  sender?: string;
  label?: string;
  host_system_id?: string;
  public: boolean;
  message: Content;
  read: boolean;
  seen: boolean;
  archived: boolean;
  snoozed_until?: string;
  expiredat: number; // seconds since 1970
  arrived: number; // its place in the order of changes
  unreadat?: number; // that of when it was marked as unread again
  changed: number; // that of its last change
}

export interface Tally {
  total: number;
  unread: number;
  unseen: number;
  archived: number;
  snoozed: number;
}

export interface Counts {
  all: Tally;
  categories: Record<string, Tally>;
}

export interface Mark {
  own: number;
  public: number;
}

// Up to where everything was marked.
export interface Marks {
  at: number; // the change that they are as of
  read: Mark;
  seen: Mark;
  categories: Record<string, Mark>;
}

export interface Page {
  messages: Message[];
  next?: string;
  marks: Marks;
  sequence: string;
}

export type Show = 'active' | 'unread' | 'read' | 'snoozed' | 'archived';
export interface View {
  show: Show;
  category?: string | undefined;
}

export const noTally: Tally = { total: 0, unread: 0, unseen: 0, archived: 0, snoozed: 0 };

export function isShown(message: Message, view: View): boolean {
  if (view.category !== undefined && message.category !== view.category) return false;
  if (view.show === 'archived') return message.archived;
  if (view.show === 'snoozed') return !message.archived && !!message.snoozed_until;
  if (message.archived || message.snoozed_until) return false;
  return view.show === 'active' || message.read === (view.show === 'read');
}

// What a message adds to the counts.
export function tallyOf(message: Message): Tally {
  const active = !message.archived && !message.snoozed_until;
  return {
    total: +active,
    unread: +(active && !message.read),
    unseen: +(active && !message.read && !message.seen),
    archived: +message.archived,
    snoozed: +(!message.archived && !!message.snoozed_until),
  };
}

export function addTally(to: Tally, tally: Tally, times: 1 | -1): Tally {
  return {
    total: to.total + times * tally.total,
    unread: to.unread + times * tally.unread,
    unseen: to.unseen + times * tally.unseen,
    archived: to.archived + times * tally.archived,
    snoozed: to.snoozed + times * tally.snoozed,
  };
}

// Categories have any name, those of members that every object has too.
export function ofCategory<T>(all: Record<string, T>, category: string | undefined): T | undefined {
  return category !== undefined && Object.hasOwn(all, category) ? all[category] : undefined;
}

const covers = (mark: Mark, message: Message) => message.arrived <= (message.public ? mark.public : mark.own);

// A message as it is once marks are known that may be newer than it.
export function withMarks(message: Message, marks: Marks): Message {
  const mark = ofCategory(marks.categories, message.category) ?? marks.read;
  const read = message.read || (covers(mark, message) && (message.unreadat ?? 0) <= mark.own);
  const seen = message.seen || read || covers(marks.seen, message);
  return read === message.read && seen === message.seen ? message : { ...message, read, seen };
}

// A link that is opened, and not one that would run in the page.
export function safeLink(uri: unknown, base: string): string | undefined {
  if (typeof uri !== 'string' || uri === '') return undefined;
  try {
    const url = new URL(uri, base);
    return ['http:', 'https:', 'mailto:', 'tel:'].includes(url.protocol) ? url.href : undefined;
  } catch {
    return undefined;
  }
}
