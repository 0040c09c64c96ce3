// One script: defines <tabella-inbox>, and gives the client that it is made of.
import { TabellaInbox } from './element.js';

export { InboxClient, InboxError, type Connection, type InboxOptions } from './client.js';
export type { Counts, Mark, Marks, Message, Show, Tally, View } from './messages.js';
export type { Plural, Texts } from './texts.js';
export { TabellaInbox };

if (!customElements.get('tabella-inbox')) customElements.define('tabella-inbox', TabellaInbox);
