// All that the element says, in English. Others are given by its attribute `texts` (JSON) or the property of
// that name, some or all of them; {count}, {title} and {category} stand for what they say. A text that
// depends on a number has a form for each plural of its language (Intl.PluralRules).

export type Plural = Partial<Record<Intl.LDMLPluralRule, string>> & { other: string };

export const english = {
  title: 'Notifications',
  open: { one: 'Notifications, {count} unread', other: 'Notifications, {count} unread' } as Plural,
  arrived: { one: '{count} new notification', other: '{count} new notifications' } as Plural,
  pill: { one: '{count} new', other: '{count} new' } as Plural,
  all: 'All',
  show: 'Show',
  active: 'All',
  unread: 'Unread',
  snoozed: 'Snoozed',
  archived: 'Archived',
  markAll: 'Mark all as read',
  markRead: 'Mark as read',
  markUnread: 'Mark as unread',
  archive: 'Archive',
  unarchive: 'Move back',
  snooze: 'Snooze',
  undo: 'Undo',
  close: 'Close',
  isUnread: 'Unread',
  didArchive: 'Archived',
  didUnarchive: 'Moved back',
  didSnooze: 'Snoozed',
  didRead: 'Marked as read',
  failed: 'That did not work. Try again.',
  empty: 'Nothing here yet',
  emptyHint: 'New notifications will show up here.',
  loading: 'Loading…',
  offline: 'You are offline. This catches up when you are back.',
  connecting: 'Connecting…',
  refused: 'You are signed out. Reload the page to sign in again.',
};

export type Texts = typeof english;

export function fill(text: string, values: Record<string, string | number>): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
}

export function plural(text: Plural, count: number, language: string): string {
  const form = text[new Intl.PluralRules(language).select(count)] ?? text.other;
  return fill(form, { count: new Intl.NumberFormat(language).format(count) });
}

const units: [Intl.RelativeTimeFormatUnit, number][] = [['day', 86_400], ['hour', 3_600], ['minute', 60]];

// "5 minutes ago", "yesterday"; the date for what is older than a week.
export function ago(time: Date, now: number, language: string): string {
  const seconds = (time.getTime() - now) / 1000;
  if (Math.abs(seconds) > 7 * 86_400) return new Intl.DateTimeFormat(language, { dateStyle: 'medium' }).format(time);
  const format = new Intl.RelativeTimeFormat(language, { numeric: 'auto', style: 'short' });
  for (const [unit, length] of units)
    if (Math.abs(seconds) >= length) return format.format(Math.round(seconds / length), unit);
  return format.format(0, 'second');
}
