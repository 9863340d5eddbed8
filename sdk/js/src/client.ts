/** The client: one connection, one outbox, and the collections of a tenant. */

import { Aggregate, type AggregateRow } from "./aggregate.js";
import { checkName, checkObject, checkOptions } from "./arguments.js";
import { type Clock, REAL_CLOCK } from "./clock.js";
import { Collection } from "./collection.js";
import type { Core } from "./core.js";
import { type CredentialOptions, Credentials } from "./credentials.js";
import { Dataset } from "./dataset.js";
import { idSegment } from "./ejson/path.js";
import { ConnectionError, type RillbaseError } from "./errors.js";
import { type CallOptions, Http } from "./http/http.js";
import { Connection, type ConnectionState } from "./live/connection.js";
import type { FailureReport } from "./live/followed.js";
import type { EnvelopeFrame } from "./live/frames.js";
import { Registry } from "./live/registry.js";
import { rowOf } from "./live/view.js";
import type { Plain } from "./local/paths.js";
import { LocalWrites } from "./local/writes.js";
import { TransactionSteps } from "./steps.js";
import { Topic } from "./topic.js";
import { eventStreamDial } from "./transport/event-stream.js";
import { withFallback } from "./transport/fallback.js";
import type { Dial } from "./transport/socket.js";
import { platformDial } from "./transport/web-socket.js";
import type { Document } from "./types.js";
import { transaction } from "./writes/calls.js";
import { DirectOutbox, type Outbox } from "./writes/outbox.js";
import { QueueOutbox } from "./writes/queue.js";
import type { QueueStorage } from "./writes/storage.js";

/** The options of `createClient`. */
export interface ClientOptions extends CredentialOptions {
  /** The server's URL: `https://db.example.com`. */
  readonly url: string;
  /**
   * Whether every number is written back with its type, for programs that edit any document: whole
   * doubles arrive as `Double`, and 64-bit integers that 32 bits could hold as `Long`.
   */
  readonly typedNumbers?: boolean;
  /** The timeout of an HTTP call, retries included. */
  readonly timeoutMs?: number;
  /** Whether writes are visible locally before the server confirms them. Default: true. */
  readonly optimistic?: boolean;
  /** Queues writes while there is no connection, instead of failing them. */
  readonly queue?: QueueStorage;
  /** Called with queued writes of an earlier run of the program that the server rejected. */
  readonly onQueueError?: (error: RillbaseError) => void;
  /** Called when a subscription fails; without it, failures are written to `console.error`. */
  readonly onError?: (error: RillbaseError) => void;
  /** A connection that is silent for this long is closed; by default twice the heartbeat. */
  readonly silenceMs?: number;
  /** Another way to connect, for platforms without WebSocket and for tests. */
  readonly dial?: Dial;
  readonly fetch?: typeof fetch;
  readonly clock?: Clock;
}

const CLIENT_OPTIONS = [
  "url",
  "key",
  "token",
  "getToken",
  "getTicket",
  "tenant",
  "typedNumbers",
  "timeoutMs",
  "optimistic",
  "queue",
  "onQueueError",
  "onError",
  "silenceMs",
  "dial",
  "fetch",
  "clock",
] as const satisfies readonly (keyof ClientOptions)[];

const TIMEOUT_MS = 30_000;
/** After the machine reports that it is offline, how long the connection has to respond to a ping. */
const PROBE_MS = 3_000;

/** Creates a client. It connects when the first subscription starts. */
export function createClient(options: ClientOptions): Client {
  return new Client(options);
}

/** The connection to a tenant, and its collections, aggregates, topics and datasets. */
export class Client {
  private readonly core: Core;
  private readonly connection: Connection;
  private readonly queue: QueueOutbox | undefined;
  private readonly stopWatching: () => void;

  constructor(options: ClientOptions) {
    checkObject("What createClient() takes", options);
    checkOptions("createClient()", options, CLIENT_OPTIONS);
    checkName("The option url", options.url);
    const clock = options.clock ?? REAL_CLOCK;
    const url = options.url.replace(/\/+$/, "");
    const fetching: typeof fetch = options.fetch ?? ((...call) => fetch(...call));
    const typedNumbers = options.typedNumbers ?? false;
    const credentials = new Credentials(options, () => clock.now());
    const http = new Http({
      url,
      credentials,
      clock,
      fetch: fetching,
      typedNumbers,
      timeoutMs: options.timeoutMs ?? TIMEOUT_MS,
    });
    this.connection = new Connection({
      url,
      credentials,
      clock,
      dial: options.dial ?? withFallback(platformDial(), eventStreamDial(fetching)),
      silenceMs: options.silenceMs ?? null,
      typedNumbers,
    });
    const writes = new LocalWrites();
    this.queue = options.queue && queueOf(options.queue, options, http, writes, clock);
    const outbox: Outbox = this.queue ?? new DirectOutbox(http, writes, options.optimistic ?? true);
    const read = readerOf(http);
    const report = failureReport(options.onError);
    const live = new Registry({ connection: this.connection, writes, clock, read, report });
    this.core = { http, outbox, clock, connection: this.connection, live, report };
    this.stopWatching = this.watchNetwork();
  }

  /** A collection of documents of one shape. */
  collection<T extends Document = Document>(name: string): Collection<T> {
    checkName("The name of a collection", name);
    return new Collection<T>(this.core, name);
  }

  /** An aggregate whose rows have one shape. */
  aggregate<R extends AggregateRow = AggregateRow>(name: string): Aggregate<R> {
    return new Aggregate<R>(this.core, name);
  }

  /** A topic whose publications have data of one shape. */
  topic<D extends object = Plain>(name: string): Topic<D> {
    checkName("The name of a topic", name);
    return new Topic<D>(this.core, name);
  }

  /** A dataset of analytics tables. */
  dataset(name: string): Dataset {
    return new Dataset(this.core, name);
  }

  /** Writes to several documents and collections, all or none. */
  async transaction(
    build: (steps: TransactionSteps) => void,
    options: CallOptions = {},
  ): Promise<{ readonly id: unknown; readonly version: number }[]> {
    const list = new TransactionSteps();
    build(list);
    const body = await this.core.outbox.submit(transaction(list.steps), options);
    return (body as { results: { id: unknown; version: number }[] }).results;
  }

  /** The state of the connection. */
  get state(): ConnectionState {
    return this.connection.state;
  }

  /** Calls the listener whenever the connection's state changes. Returns a function that stops this. */
  onState(listener: (state: ConnectionState) => void): () => void {
    return this.connection.onState(listener);
  }

  /** The number of queued writes. */
  get queuedWrites(): number {
    return this.queue?.length ?? 0;
  }

  /** Ends all subscriptions and the connection. Queued writes stay queued. */
  close(): void {
    this.stopWatching();
    this.core.live.close();
    this.queue?.close();
    this.connection.close();
  }

  /** Reacts to the platform's `online` and `offline` events, if it has them. */
  private watchNetwork(): () => void {
    if (!("addEventListener" in globalThis)) return () => {};
    const online = () => {
      this.connection.retryNow();
      this.queue?.retryNow();
    };
    const offline = () => this.connection.probe(PROBE_MS);
    const stopState = this.connection.onState((state) => {
      if (state === "open") this.queue?.retryNow();
    });
    addEventListener("online", online);
    addEventListener("offline", offline);
    return () => {
      stopState();
      removeEventListener("online", online);
      removeEventListener("offline", offline);
    };
  }
}

function failureReport(onError: ClientOptions["onError"]): FailureReport {
  return (subscription, error) => {
    // A subscription ends with this error only because the program closed the client.
    if (error instanceof ConnectionError) return;
    if (onError !== undefined) onError(error);
    else console.error(`Rillbase: the ${subscription} failed (${error.code}): ${error.message}`);
  };
}

function queueOf(
  storage: QueueStorage,
  options: ClientOptions,
  http: Http,
  local: LocalWrites,
  clock: Clock,
): QueueOutbox {
  const refused = options.onQueueError ?? (() => {});
  return new QueueOutbox({ http, local, clock, storage, refused });
}

/** Returns a function that reads a document which was too large to be sent with its change. */
function readerOf(http: Http) {
  return async (collection: string, id: unknown) => {
    const documents = `/v1/collections/${encodeURIComponent(collection)}/documents`;
    const path = `${documents}/${idSegment(id)}`;
    return rowOf((await http.call({ method: "GET", path })) as EnvelopeFrame);
  };
}
