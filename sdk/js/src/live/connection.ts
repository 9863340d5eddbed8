/**
 * The one connection of a client, kept open as long as there are subscriptions.
 *
 *     IDLE     no subscriptions
 *     DIALING  a socket is being opened, or `hello` has not been answered
 *     OPEN     the server has accepted `hello`
 *     WAITING  the connection broke; another attempt follows
 *     CLOSED   the client is closed, or the server does not accept it any more
 *
 * A silent connection is probed (`ping`) and then closed, because a broken connection looks the
 * same as an idle one. Each attempt has a number, and messages of earlier attempts are ignored.
 */

import { backoffMs } from "../backoff.js";
import type { Clock, Timer } from "../clock.js";
import type { Credentials } from "../credentials.js";
import { decode, decodeTyped } from "../ejson/decode.js";
import {
  asRillbaseError,
  ConnectionError,
  type Problem,
  type RillbaseError,
  ServerError,
} from "../errors.js";
import type { Dial, Socket } from "../transport/socket.js";
import type { ErrorFrame, Frame, SubscriptionFrame } from "./frames.js";

/** `idle` before the first subscription, `offline` while the client waits to reconnect. */
export type ConnectionState = "idle" | "connecting" | "open" | "offline" | "closed";

/** A subscription of any kind, as the connection sees it. */
export interface Channel {
  /** Returns the members of the message that subscribes, or resumes from the last position. */
  subscribe(): Record<string, unknown>;
  /** Processes a decoded frame; false: the frames are inconsistent, so subscribe again. */
  frame(frame: SubscriptionFrame): boolean;
  /** Handles a change of the connection's state. */
  connection(state: ConnectionState): void;
  /** Handles a permanent rejection by the server. */
  failed(error: RillbaseError): void;
}

export interface ConnectionOptions {
  readonly url: string;
  readonly credentials: Credentials;
  readonly dial: Dial;
  readonly clock: Clock;
  /** A connection that is silent for this long is closed; null: twice the server's heartbeat. */
  readonly silenceMs: number | null;
  /** Whether documents are sent as canonical Extended JSON, and numbers keep their types. */
  readonly typedNumbers: boolean;
}

const DIAL_TIMEOUT_MS = 10_000;
const DEFAULT_HEARTBEAT_MS = 10_000;
/** After the last subscription ends, the connection stays open this long for another. */
const LINGER_MS = 5_000;
/** The server has too many connections: an early retry is pointless. */
const REFUSED_WAIT_MS = 10_000;

const UNAUTHENTICATED = 4401;
const FORBIDDEN = 4403;
const TOO_MANY = 4429;

interface AttachedChannel {
  readonly channel: Channel;
  /** Its name on the connection: new for each attempt, so that late frames are recognized. */
  name: string;
  failures: number;
  retry: Timer | undefined;
}

export class Connection {
  private phase: "idle" | "dialing" | "open" | "waiting" | "closed" = "idle";
  private attempt = 0;
  private failures = 0;
  private refusals = 0;
  private names = 0;
  private socket: Socket | undefined;
  /** Whether messages can be sent; `welcome` may not have arrived yet. */
  private carries = false;
  private heartbeatMs = DEFAULT_HEARTBEAT_MS;
  private lastError: Problem | undefined;
  private readonly channels = new Map<Channel, AttachedChannel>();
  private readonly named = new Map<string, AttachedChannel>();
  private readonly listeners = new Set<(state: ConnectionState) => void>();
  /** The next transition of this phase: an attempt, its timeout, or the end of lingering. */
  private timer: Timer | undefined;
  private silence: Timer | undefined;
  private renewal: Timer | undefined;
  private renewing = false;

  constructor(private readonly options: ConnectionOptions) {}

  private get form(): Record<string, string> {
    return this.options.typedNumbers ? { ejson: "canonical" } : {};
  }

  get state(): ConnectionState {
    switch (this.phase) {
      case "dialing":
        return "connecting";
      case "waiting":
        return "offline";
      default:
        return this.phase;
    }
  }

  onState(listener: (state: ConnectionState) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Starts a subscription, and connects if necessary. */
  attach(channel: Channel): void {
    if (this.phase === "closed") {
      channel.failed(new ConnectionError("The client is closed."));
      return;
    }
    const attached: AttachedChannel = { channel, name: "", failures: 0, retry: undefined };
    this.channels.set(channel, attached);
    channel.connection(this.state);
    if (this.phase === "idle") this.dial();
    else if (this.carries) {
      // The timer of an open connection closes it when there are no subscriptions.
      if (this.phase === "open") this.cancelTimer();
      this.subscribe(attached);
    }
  }

  /** Ends a subscription. */
  detach(channel: Channel): void {
    const attached = this.channels.get(channel);
    if (attached === undefined) return;
    this.release(attached);
    if (this.carries && attached.name !== "") {
      this.send({ type: "unsubscribe", id: attached.name });
    }
    if (this.channels.size === 0) this.linger();
  }

  /** Makes the next attempt now: the network is available again. */
  retryNow(): void {
    if (this.phase === "waiting") this.dial();
  }

  /** Pings the server, and closes the connection if it does not respond in time. */
  probe(withinMs: number): void {
    if (this.phase !== "open") return;
    this.ask();
    this.watch(withinMs);
  }

  close(): void {
    this.end(new ConnectionError("The client is closed."));
  }

  private end(error: RillbaseError): void {
    this.drop();
    this.enter("closed");
    for (const attached of [...this.channels.values()]) this.fail(attached, error);
  }

  private enter(phase: Connection["phase"]): void {
    this.phase = phase;
    for (const { channel } of [...this.channels.values()]) channel.connection(this.state);
    for (const listener of [...this.listeners]) listener(this.state);
  }

  // Dialling

  private dial(): void {
    this.drop();
    this.attempt += 1;
    const { attempt } = this;
    this.lastError = undefined;
    this.enter("dialing");
    this.timer = this.options.clock.after(DIAL_TIMEOUT_MS, () => this.disconnected(BROKEN));
    this.options.credentials.hello().then(
      (members) => {
        if (attempt === this.attempt) this.connect(attempt, members);
      },
      () => {
        // The page's own server is unavailable; the next attempt calls it again.
        if (attempt === this.attempt) this.disconnected(BROKEN);
      },
    );
  }

  private connect(attempt: number, hello: Record<string, string>): void {
    const current = () => attempt === this.attempt;
    this.socket = this.options.dial(socketUrl(this.options.url), {
      opened: () => {
        if (!current()) return;
        this.carries = true;
        this.send({ type: "hello", ...hello, ...this.form });
        for (const attached of this.channels.values()) this.subscribe(attached);
      },
      message: (text) => {
        if (current()) this.take(text);
      },
      closed: (code) => {
        if (current()) this.disconnected(code);
      },
    });
  }

  /** Closes the socket in any state. */
  private drop(): void {
    this.attempt += 1;
    this.cancelTimer();
    this.options.clock.cancel(this.silence);
    this.options.clock.cancel(this.renewal);
    this.named.clear();
    for (const attached of this.channels.values()) {
      this.options.clock.cancel(attached.retry);
      attached.name = "";
    }
    this.carries = false;
    this.socket?.close();
    this.socket = undefined;
  }

  private disconnected(code: number): void {
    const error = this.lastError;
    this.drop();
    if (this.channels.size === 0) {
      this.enter("idle");
    } else if (code === UNAUTHENTICATED) {
      this.unauthenticated(error);
    } else if (code === FORBIDDEN) {
      this.end(new ServerError(error ?? { code: "forbidden" }, 403));
      this.phase = "idle";
    } else {
      this.failures += 1;
      const wait = backoffMs(this.failures, this.options.clock.random());
      this.wait(code === TOO_MANY ? Math.max(wait, REFUSED_WAIT_MS) : wait);
    }
  }

  /** The token was rejected: tries another one, once. */
  private unauthenticated(error: Problem | undefined): void {
    this.refusals += 1;
    if (this.options.credentials.canRenew && this.refusals === 1) {
      this.options.credentials.forget();
      this.wait(0);
      return;
    }
    this.refusals = 0;
    this.end(new ServerError(error ?? { code: "invalid_credentials" }, 401));
    // A later subscription may succeed: the user may have signed in again.
    this.phase = "idle";
  }

  private wait(ms: number): void {
    this.timer = this.options.clock.after(ms, () => this.dial());
    this.enter("waiting");
  }

  private linger(): void {
    this.cancelTimer();
    if (this.phase !== "open") {
      this.drop();
      if (this.phase !== "closed") this.enter("idle");
      return;
    }
    this.timer = this.options.clock.after(LINGER_MS, () => {
      this.drop();
      this.enter("idle");
    });
  }

  // Frames

  private take(text: string): void {
    this.watch(this.options.silenceMs ?? this.heartbeatMs * 2);
    const frame = (this.options.typedNumbers ? decodeTyped : decode)(JSON.parse(text)) as Frame;
    switch (frame.type) {
      case "welcome":
        this.welcomed(frame.heartbeat_ms);
        break;
      case "goodbye":
        this.drop();
        this.wait(frame.reconnect_in_ms);
        break;
      case "error":
        this.refused(frame);
        break;
      case "ack":
        this.acknowledged(frame.id);
        break;
      case "pong":
      case "heartbeat":
        break;
      default:
        this.pass(frame);
    }
  }

  private welcomed(heartbeatMs: number): void {
    this.failures = 0;
    this.refusals = 0;
    this.heartbeatMs = heartbeatMs;
    this.cancelTimer();
    this.watch(this.options.silenceMs ?? this.heartbeatMs * 2);
    this.scheduleRenewal();
    this.enter("open");
    if (this.channels.size === 0) this.linger();
  }

  private pass(frame: SubscriptionFrame): void {
    const attached = this.named.get(frame.id);
    if (attached === undefined) return;
    if (frame.type === "end") {
      this.ended(attached, frame.error);
    } else if (attached.channel.frame(frame)) {
      attached.failures = 0;
    } else {
      this.send({ type: "unsubscribe", id: attached.name });
      this.subscribe(attached);
    }
  }

  private ended(attached: AttachedChannel, problem: Problem | null): void {
    this.named.delete(attached.name);
    attached.name = "";
    if (problem?.code === "token_expired" && this.options.credentials.canRenew) {
      this.renew();
    } else {
      const error = new ServerError(problem ?? { code: "subscription_ended" }, 410);
      this.fail(attached, error);
    }
  }

  private refused(frame: ErrorFrame): void {
    if (frame.id === null) {
      // The close code follows and decides.
      this.lastError = frame.error;
      return;
    }
    if (frame.id === RENEWAL) this.renewing = false;
    const attached = this.named.get(frame.id);
    if (attached === undefined) return;
    this.named.delete(attached.name);
    attached.name = "";
    const error = new ServerError(frame.error, frame.error.status ?? 500);
    if (error.code === "token_expired" && this.options.credentials.canRenew) this.renew();
    else if (error.isTemporary) this.retry(attached);
    else this.fail(attached, error);
  }

  // Subscriptions

  private subscribe(attached: AttachedChannel): void {
    this.options.clock.cancel(attached.retry);
    this.named.delete(attached.name);
    this.names += 1;
    attached.name = `s${this.names}`;
    this.named.set(attached.name, attached);
    this.send({ type: "subscribe", id: attached.name, ...attached.channel.subscribe() });
  }

  private retry(attached: AttachedChannel): void {
    attached.failures += 1;
    const ms = backoffMs(attached.failures, this.options.clock.random());
    attached.retry = this.options.clock.after(ms, () => this.subscribe(attached));
  }

  private fail(attached: AttachedChannel, error: RillbaseError): void {
    this.release(attached);
    attached.channel.failed(error);
    if (this.channels.size === 0 && this.phase === "open") this.linger();
  }

  private release(attached: AttachedChannel): void {
    this.options.clock.cancel(attached.retry);
    this.channels.delete(attached.channel);
    this.named.delete(attached.name);
  }

  // Tokens

  private scheduleRenewal(): void {
    this.options.clock.cancel(this.renewal);
    const ms = this.options.credentials.renewInMs;
    if (ms !== undefined) this.renewal = this.options.clock.after(ms, () => this.renew());
  }

  private renew(): void {
    if (this.renewing) return;
    this.renewing = true;
    const { attempt } = this;
    this.options.credentials.forget();
    this.options.credentials.hello().then(
      (members) => {
        if (attempt === this.attempt) this.send({ type: "auth", id: RENEWAL, ...members });
        else this.renewing = false;
      },
      (error: unknown) => {
        this.renewing = false;
        this.lastError = { detail: asRillbaseError(error).message };
        if (attempt === this.attempt) this.disconnected(BROKEN);
      },
    );
  }

  /** A new token is valid: subscribes again to what ended with the old one. */
  private acknowledged(id: string): void {
    if (id !== RENEWAL) return;
    this.renewing = false;
    this.scheduleRenewal();
    for (const attached of this.channels.values())
      if (attached.name === "") this.subscribe(attached);
  }

  // Silence

  /** Closes the connection after this silence; pings the server half way through. */
  private watch(ms: number): void {
    const { clock } = this.options;
    clock.cancel(this.silence);
    this.silence = clock.after(ms / 2, () => {
      this.ask();
      this.silence = clock.after(ms / 2, () => this.disconnected(BROKEN));
    });
  }

  private ask(): void {
    this.send({ type: "ping", id: "p" });
  }

  private send(message: Record<string, unknown>): void {
    // Messages consist of JSON's types already: queries are encoded once, when they are created.
    this.socket?.send(JSON.stringify(message));
  }

  private cancelTimer(): void {
    this.options.clock.cancel(this.timer);
    this.timer = undefined;
  }
}

const BROKEN = 1006;
const RENEWAL = "auth";

function socketUrl(url: string): string {
  return `${url.replace(/^http/, "ws")}/v1/realtime`;
}
