// Server-sent events over fetch: unlike EventSource it can send credentials, and says how it ended.

export interface ServerEvent {
  id: string;
  event: string;
  data: string;
}

// Reads events until the stream ends. `heard` is called for every piece that arrives, keep-alives too.
export async function* readEvents(body: ReadableStream<Uint8Array>, heard: () => void): AsyncGenerator<ServerEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      heard();
      text += decoder.decode(value, { stream: true });
      let end: number;
      while ((end = text.indexOf('\n\n')) >= 0) {
        const event = parseEvent(text.slice(0, end));
        text = text.slice(end + 2);
        if (event) yield event;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

function parseEvent(block: string): ServerEvent | undefined {
  const event: ServerEvent = { id: '', event: '', data: '' };
  let hasData = false;
  for (const line of block.split('\n')) {
    const colon = line.indexOf(': ');
    if (colon <= 0) continue;
    const value = line.slice(colon + 2);
    switch (line.slice(0, colon)) {
      case 'id': event.id = value; break;
      case 'event': event.event = value; break;
      case 'data':
        event.data += (hasData ? '\n' : '') + value;
        hasData = true;
        break;
    }
  }
  return hasData ? event : undefined;
}
