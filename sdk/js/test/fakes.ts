/** A clock that tests control, and a server that they simulate. */

import type { Clock, Timer } from "../src/clock.js";
import { type Client, createClient } from "../src/index.js";
import type { Dial, SocketEvents } from "../src/transport/socket.js";

interface Due {
  readonly id: number;
  readonly at: number;
  readonly act: () => void;
}

/** Time that only passes when a test says so. */
export class FakeClock implements Clock {
  private time = 1_700_000_000_000;
  private due: Due[] = [];
  private ids = 0;

  now(): number {
    return this.time;
  }

  random(): number {
    return 0.5;
  }

  after(ms: number, act: () => void): Timer {
    this.ids += 1;
    this.due.push({ id: this.ids, at: this.time + ms, act });
    return this.ids;
  }

  cancel(timer: Timer | undefined): void {
    this.due = this.due.filter(({ id }) => id !== timer);
  }

  /** Lets time pass, and everything happen that was due meanwhile. */
  async pass(ms: number): Promise<void> {
    const end = this.time + ms;
    for (;;) {
      await settled();
      const next = this.due.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
      if (next === undefined) break;
      this.cancel(next.id);
      this.time = Math.max(this.time, next.at);
      next.act();
    }
    this.time = end;
    await settled();
  }
}

/** Lets promises that are settled be noticed. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
}

type Message = Record<string, unknown>;

/** One connection, seen from the server. */
export class FakeSocket {
  readonly said: Message[] = [];
  isClosed = false;

  constructor(private readonly events: SocketEvents) {}

  open(): void {
    this.events.opened();
  }

  tell(frame: Message): void {
    this.events.message(JSON.stringify(frame));
  }

  break(code = 1006): void {
    this.events.closed(code, "");
  }

  /** The name of the newest subscription. */
  get name(): string {
    return String(this.all("subscribe").at(-1)?.id);
  }

  all(type: string): Message[] {
    return this.said.filter((message) => message.type === type);
  }
}

/** Dials sockets that wait for the test to play the server. */
export class FakeServer {
  readonly sockets: FakeSocket[] = [];

  readonly dial: Dial = (_url, events) => {
    const socket = new FakeSocket(events);
    this.sockets.push(socket);
    return {
      send: (text) => socket.said.push(JSON.parse(text) as Message),
      close: () => {
        socket.isClosed = true;
      },
    };
  };

  get last(): FakeSocket {
    const socket = this.sockets.at(-1);
    if (socket === undefined) throw new Error("Nobody has dialled.");
    return socket;
  }

  /** Lets the newest connection in and answers its newest subscription. */
  async answer(items: Message[], resume = "r0"): Promise<FakeSocket> {
    await settled();
    const { last } = this;
    last.open();
    last.tell({ type: "welcome", connection: "c", heartbeat_ms: 10_000 });
    last.tell({ type: "result", id: last.name, items, part: 0, last: true, resume });
    last.tell({ type: "ready", id: last.name, resume });
    await settled();
    return last;
  }
}

/** A row of a result. */
export function row(id: string, version: number, members: Message = {}): Message {
  return { id, version, document: { _id: id, ...members } };
}

/** A client whose calls are answered so, one after another, and noted. */
export function answering(answers: object[] = []): {
  client: Client;
  clock: FakeClock;
  server: FakeServer;
  calls: Request[];
} {
  const clock = new FakeClock();
  const server = new FakeServer();
  const calls: Request[] = [];
  const fetching = async (url: URL | RequestInfo, init?: RequestInit) => {
    calls.push(new Request(url, init));
    return Response.json(answers.shift() ?? {});
  };
  const client = createClient({
    url: "http://db",
    key: "rbk_x",
    clock,
    dial: server.dial,
    fetch: fetching,
  });
  return { client, clock, server, calls };
}
