// How the element looks. Every colour and size is a custom property --tabella-inbox-…; every piece is a part.
import { css } from 'lit';

const dark = css`
  --_background: var(--tabella-inbox-background, #171c25);
  --_text: var(--tabella-inbox-text, #e6e9ef);
  --_muted: var(--tabella-inbox-muted, #a3adbd);
  --_border: var(--tabella-inbox-border, #2f3744);
  --_hover: var(--tabella-inbox-hover, #1f2632);
  --_accent: var(--tabella-inbox-accent, #8aa5ff);
  --_on-accent: var(--tabella-inbox-on-accent, #0f131a);
  --_badge: var(--tabella-inbox-badge, #ff8a7d);
  --_on-badge: var(--tabella-inbox-on-badge, #1c0a08);
  --_shadow: var(--tabella-inbox-shadow, 0 0 0 1px #2f3744, 0 16px 32px #0009);
`;

export const styles = css`
  :host {
    --_background: var(--tabella-inbox-background, #fff);
    --_text: var(--tabella-inbox-text, #1c2430);
    --_muted: var(--tabella-inbox-muted, #5b6472);
    --_border: var(--tabella-inbox-border, #e4e7ec);
    --_hover: var(--tabella-inbox-hover, #f4f6fa);
    --_accent: var(--tabella-inbox-accent, #2f5bea);
    --_on-accent: var(--tabella-inbox-on-accent, #fff);
    --_badge: var(--tabella-inbox-badge, #d92d20);
    --_on-badge: var(--tabella-inbox-on-badge, #fff);
    --_shadow: var(--tabella-inbox-shadow, 0 4px 6px -2px #10182814, 0 16px 32px -4px #10182826);
    --_radius: var(--tabella-inbox-radius, 10px);
    --_row: var(--tabella-inbox-row-height, 76px);
    position: relative;
    display: inline-block;
    font: var(--tabella-inbox-font, 14px/1.4 system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif);
    color: var(--_text);
    text-align: start;
  }
  :host([inline]) { display: block; }
  :host([hidden]) { display: none; }
  @media (prefers-color-scheme: dark) {
    :host(:not([theme='light'])) { ${dark} }
  }
  :host([theme='dark']) { ${dark} }

  * { box-sizing: border-box; }
  button, select { font: inherit; color: inherit; }
  button { border: 0; background: none; padding: 0; cursor: pointer; }
  :focus-visible { outline: 2px solid var(--_accent); outline-offset: 2px; }
  svg { display: block; width: 1.25em; height: 1.25em; fill: none; stroke: currentColor; stroke-width: 1.75; stroke-linecap: round; stroke-linejoin: round; }
  .for-readers { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }

  .bell { position: relative; display: grid; place-items: center; width: 40px; height: 40px; border-radius: 50%; font-size: 17px; }
  .bell:hover, .bell[aria-expanded='true'] { background: var(--_hover); }
  .badge {
    position: absolute; inset-block-start: 2px; inset-inline-end: 0; min-width: 18px; height: 18px; padding: 0 5px; border-radius: 9px;
    background: var(--_badge); color: var(--_on-badge); font-size: 11px; font-weight: 650; line-height: 18px; text-align: center;
    font-variant-numeric: tabular-nums;
  }

  .panel {
    display: flex; flex-direction: column; background: var(--_background); color: var(--_text); overflow: hidden;
    border-radius: var(--_radius); height: var(--tabella-inbox-height, 520px);
  }
  :host(:not([inline])) .panel {
    position: absolute; z-index: var(--tabella-inbox-z-index, 1000); inset-block-start: calc(100% + 8px); inset-inline-end: 0;
    width: var(--tabella-inbox-width, 400px); max-height: min(80vh, var(--tabella-inbox-height, 520px)); box-shadow: var(--_shadow);
  }
  :host([align='start']:not([inline])) .panel { inset-inline: 0 auto; }
  :host([inline]) .panel { border: 1px solid var(--_border); }
  @media (max-width: 480px) {
    :host(:not([inline])) .panel { position: fixed; inset: 0; width: auto; height: 100%; max-height: none; border-radius: 0; }
  }

  header { display: flex; align-items: center; gap: 8px; padding: 12px 12px 8px 16px; }
  :host(:dir(rtl)) header { padding: 12px 16px 8px 12px; }
  h2 { flex: 1; margin: 0; font-size: 16px; font-weight: 650; }
  select { background: var(--_background); border: 1px solid var(--_border); border-radius: 6px; padding: 3px 6px; font-size: 13px; }
  .icon { display: grid; place-items: center; width: 30px; height: 30px; border-radius: 6px; color: var(--_muted); }
  .icon:hover { background: var(--_hover); color: var(--_text); }
  .icon[disabled] { opacity: 0.4; cursor: default; }

  .tabs { display: flex; gap: 4px; padding: 0 12px; border-block-end: 1px solid var(--_border); overflow-x: auto; scrollbar-width: none; flex: none; }
  .tab { padding: 7px 8px 9px; color: var(--_muted); white-space: nowrap; border-block-end: 2px solid transparent; margin-block-end: -1px; }
  .tab:focus-visible { outline-offset: -2px; }
  .tab[aria-selected='true'] { color: var(--_text); border-color: var(--_accent); font-weight: 600; }
  .tab span { color: var(--_muted); font-size: 12px; font-weight: 400; font-variant-numeric: tabular-nums; margin-inline-start: 4px; }

  .notice { padding: 7px 16px; font-size: 13px; color: var(--_muted); background: var(--_hover); }
  .body { position: relative; flex: 1; min-height: 0; }
  .list { height: 100%; overflow-y: auto; overscroll-behavior: contain; position: relative; }
  .list:focus-visible { outline-offset: -2px; }
  .rows { position: relative; }
  .row > slot { display: contents; }
  .row {
    position: absolute; inset-inline: 0; height: var(--_row); overflow: hidden; display: grid; gap: 0 10px;
    grid-template-columns: 8px minmax(0, 1fr); padding: 11px 16px 0 12px; border-block-end: 1px solid var(--_border);
  }
  :host(:dir(rtl)) .row { padding: 11px 12px 0 16px; }
  .row:hover, .row:focus-within { background: var(--_hover); }
  .row:focus-visible { outline-offset: -2px; }
  .row ::slotted(*) { cursor: pointer; }
  .dot { width: 8px; height: 8px; border-radius: 50%; margin-block-start: 6px; }
  .unread .dot { background: var(--_accent); }
  .content { min-width: 0; }
  .line { display: flex; gap: 8px; align-items: baseline; }
  .name { flex: 1; min-width: 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; color: inherit; text-decoration: none; text-align: start; }
  .unread .name { font-weight: 650; }
  .name::after { content: ''; position: absolute; inset: 0; }
  .name:focus-visible { outline: none; }
  .name:focus-visible::after { outline: 2px solid var(--_accent); outline-offset: -2px; }
  time { color: var(--_muted); font-size: 12px; white-space: nowrap; }
  .text {
    margin: 2px 0 0; color: var(--_muted); font-size: 13px; overflow: hidden; display: -webkit-box;
    -webkit-box-orient: vertical; -webkit-line-clamp: 2; overflow-wrap: anywhere;
  }
  .actions {
    position: absolute; inset-block-start: 6px; inset-inline-end: 10px; display: flex; gap: 2px; padding: 2px; opacity: 0; pointer-events: none;
    background: var(--_background); border: 1px solid var(--_border); border-radius: 8px;
  }
  .row:hover .actions, .row:focus-within .actions { opacity: 1; pointer-events: auto; }
  /* Without a pointer that hovers they stand there, below the time. */
  @media (hover: none) { .actions { opacity: 1; pointer-events: auto; inset-block-start: auto; inset-block-end: 4px; border: 0; background: none; } }

  .pill {
    position: absolute; z-index: 1; inset-block-start: 10px; inset-inline: 0; margin-inline: auto; width: max-content; padding: 5px 14px;
    border-radius: 16px; background: var(--_accent); color: var(--_on-accent); font-size: 13px; font-weight: 600; box-shadow: 0 2px 8px #0003;
  }
  .empty { display: grid; place-content: center; justify-items: center; gap: 6px; height: 100%; padding: 24px; text-align: center; color: var(--_muted); }
  .empty svg { font-size: 28px; margin-block-end: 6px; }
  .empty strong { color: var(--_text); }
  .toast {
    position: absolute; z-index: 2; inset-block-end: 12px; inset-inline: 12px; display: flex; align-items: center; gap: 12px;
    padding: 9px 14px; border-radius: 8px; background: #1c2430; color: #fff; font-size: 13px;
  }
  .toast span { flex: 1; }
  .toast button { font-weight: 650; color: #a9beff; padding: 2px 6px; border-radius: 4px; }
  @media (prefers-reduced-motion: no-preference) {
    .panel { animation: appear 120ms ease-out; }
    .actions { transition: opacity 100ms; }
    @keyframes appear { from { opacity: 0; transform: translateY(-4px); } }
  }
  @media (forced-colors: active) { .unread .dot { background: Highlight; } .badge { border: 1px solid; } }
`;
