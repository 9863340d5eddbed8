/**
 * The protocol over Server-Sent Events, for networks that block WebSockets: each subscription is an
 * HTTP response that does not end. To the connection it is a socket like any other; when one of its
 * streams breaks, the whole socket counts as broken, and everything resumes.
 *
 * Streams have one direction only, so a `ping` has no response: the server's heartbeats replace it.
 */

import { stringify } from "../ejson/encode.js";
import { BROKEN, type Dial, type Socket, type SocketEvents } from "./socket.js";

const UNAUTHENTICATED = 4401;
/** Streams have no welcome; this is the server's heartbeat. */
const HEARTBEAT_MS = 10_000;
const IN_ADDRESS = [
  "filter",
  "sort",
  "projection",
  "offset",
  "limit",
  "group",
  "lookup",
  "options",
];

type Message = Record<string, unknown> & { readonly type: string; readonly id?: string };

/** Returns a function that connects by event streams. */
export function eventStreamDial(fetching: typeof fetch): Dial {
  return (url, events) => {
    const base = url.replace(/^ws/, "http").replace(/\/v1\/realtime$/, "");
    const streams = new Streams(base, events, fetching);
    queueMicrotask(() => events.opened());
    return streams;
  };
}

class Streams implements Socket {
  private headers: Record<string, string> = {};
  /** The form of Extended JSON, which `hello` names once for all streams. */
  private form: Record<string, string> = {};
  private readonly open = new Map<string, AbortController>();
  private isOver = false;
  private isWelcome = false;

  constructor(
    private readonly base: string,
    private readonly events: SocketEvents,
    private readonly fetching: typeof fetch,
  ) {}

  send(text: string): void {
    const message = JSON.parse(text) as Message;
    switch (message.type) {
      case "hello":
        this.headers = headersOf(message);
        this.form = formOf(message);
        break;
      case "auth":
        this.headers = headersOf(message);
        this.deliver({ type: "ack", id: message.id });
        break;
      case "subscribe":
        this.subscribe(message);
        break;
      case "unsubscribe":
        this.open.get(message.id ?? "")?.abort();
        this.open.delete(message.id ?? "");
        break;
      default:
        break;
    }
  }

  close(): void {
    this.isOver = true;
    for (const stream of this.open.values()) stream.abort();
    this.open.clear();
  }

  private subscribe(message: Message): void {
    if (message.collection === undefined) {
      queueMicrotask(() => this.endUnlessUsed());
      return;
    }
    const id = message.id ?? "";
    const control = new AbortController();
    this.open.set(id, control);
    this.read(id, message, control.signal).then(
      () => this.ended(id),
      () => this.ended(id),
    );
  }

  /** Topics and aggregates have no streams of this form: without others, a WebSocket is tried again. */
  private endUnlessUsed(): void {
    if (this.open.size === 0) this.end(BROKEN);
  }

  /** Ends the whole connection, unless the stream was closed on purpose. */
  private ended(id: string): void {
    if (this.open.has(id)) this.end(BROKEN);
  }

  private async read(id: string, message: Message, signal: AbortSignal): Promise<void> {
    const headers = { ...this.headers, ...this.form };
    if (typeof message.resume === "string") headers["Last-Event-ID"] = message.resume;
    const init: RequestInit = { headers, signal, credentials: "omit", cache: "no-store" };
    const answer = await this.fetching(this.base + addressOf(message), init);
    this.welcome();
    if (!answer.ok || answer.body === null) {
      await this.refused(id, answer);
      return;
    }
    const lines = new Lines((data) => this.pass(id, data));
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      lines.take(part.value);
    }
  }

  /** The server is reachable once it has responded. */
  private welcome(): void {
    if (this.isWelcome) return;
    this.isWelcome = true;
    this.deliver({ type: "welcome", connection: "streams", heartbeat_ms: HEARTBEAT_MS });
  }

  private async refused(id: string, answer: Response): Promise<void> {
    const problem: unknown = await answer.json();
    if (answer.status === 401) {
      this.deliver({ type: "error", id: null, error: problem });
      this.end(UNAUTHENTICATED);
    } else {
      this.open.delete(id);
      this.deliver({ type: "error", id, error: problem });
    }
  }

  /** Frames of a stream all have the same name; the connection expects the subscription's name. */
  private pass(id: string, data: string): void {
    if (!this.open.has(id)) return;
    const frame = JSON.parse(data) as Message;
    if (frame.type === "end") this.open.delete(id);
    this.deliver("id" in frame ? { ...frame, id } : frame);
  }

  private deliver(frame: Record<string, unknown>): void {
    if (!this.isOver) this.events.message(JSON.stringify(frame));
  }

  private end(code: number): void {
    if (this.isOver) return;
    this.close();
    this.events.closed(code, "");
  }
}

/** Assembles events from pieces of text; only their data matters. */
export class Lines {
  private rest = "";
  private data: string[] = [];

  constructor(private readonly event: (data: string) => void) {}

  take(text: string): void {
    const lines = (this.rest + text).split("\n");
    this.rest = lines.pop() ?? "";
    for (const line of lines) this.line(line.replace(/\r$/, ""));
  }

  private line(line: string): void {
    if (line.startsWith("data:")) {
      this.data.push(line.slice(5).replace(/^ /, ""));
    } else if (line === "" && this.data.length > 0) {
      const data = this.data.join("\n");
      this.data = [];
      this.event(data);
    }
  }
}

function formOf({ ejson }: Message): Record<string, string> {
  return typeof ejson === "string" ? { "Rillbase-EJSON": ejson } : {};
}

function headersOf({ token, key, tenant }: Message): Record<string, string> {
  return {
    ...(typeof token === "string" ? { Authorization: `Bearer ${token}` } : {}),
    ...(typeof key === "string" ? { "Rillbase-Key": key } : {}),
    ...(typeof tenant === "string" ? { "Rillbase-Tenant": tenant } : {}),
  };
}

function addressOf(message: Message): string {
  const search = new URLSearchParams();
  for (const name of IN_ADDRESS) {
    // The message already contains Extended JSON.
    if (message[name] !== undefined) search.set(name, stringify(message[name]));
  }
  return `/v1/collections/${encodeURIComponent(String(message.collection))}/live?${search}`;
}
