/**
 * The one connection of a client, kept open as long as there are subscriptions.
 *
 *     IDLE     no subscriptions
 *     DIALING  a socket is being opened, or `hello` has not been answered
 *     OPEN     the server has accepted `hello`
 *     WAITING  the connection broke; another attempt follows
 *     CLOSED   the client is closed, or the server does not accept it any more
 *
 * A silent connection is probed (`ping`) and then closed, because a broken connection looks the same
 * as an idle one. Each attempt has a number, and messages of earlier attempts are ignored.
 */

import { backoffMs } from "../backoff.js";
import type { Clock, Timer } from "../clock.js";
import type { Credentials } from "../credentials.js";
import { decode } from "../ejson/decode.js";
import {
  asRillbaseError,
  ConnectionError,
  type Problem,
  type RillbaseError,
  ServerError,
} from "../errors.js";
import type { Dial, Socket } from "../transport/socket.js";
import type { ErrorFrame, Frame, SubscriptionFrame } from "./frames.js";

export type ConnectionState = "idle" | "connecting" | "open" | "offline" | "closed";

/** A subscription of any kind, as the connection sees it. */
export interface Channel {
  /** The members of the message that subscribes, or goes on from where it was. */
  subscribe(): Record<string, unknown>;
  /** Takes a frame, already decoded; false: the frames make no sense, so subscribe anew. */
  frame(frame: SubscriptionFrame): boolean;
  /** Learns how the connection is. */
  connection(state: ConnectionState): void;
  /** It is over: the server will not have it. */
  failed(error: RillbaseError): void;
}

export interface ConnectionOptions {
  readonly url: string;
  readonly credentials: Credentials;
  readonly dial: Dial;
  readonly clock: Clock;
  /** A connection that was silent for so long is given up; null: twice the server's heartbeat. */
  readonly silenceMs: number | null;
}

const DIAL_TIMEOUT_MS = 10_000;
const DEFAULT_HEARTBEAT_MS = 10_000;
/** Where nobody subscribes any more, the connection stays open for the next one. */
const LINGER_MS = 5_000;
/** Too many connections, or not let in now: there is no point in trying again soon. */
const REFUSED_WAIT_MS = 10_000;

const UNAUTHENTICATED = 4401;
const FORBIDDEN = 4403;
const TOO_MANY = 4429;

interface Held {
  readonly channel: Channel;
  /** The name on the wire, new for each attempt, so that late frames of a former one are known. */
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
  /** Whether the socket takes messages; `welcome` may still be on its way. */
  private carries = false;
  private heartbeatMs = DEFAULT_HEARTBEAT_MS;
  private lastError: Problem | undefined;
  private readonly held = new Map<Channel, Held>();
  private readonly named = new Map<string, Held>();
  private readonly listeners = new Set<(state: ConnectionState) => void>();
  /** What may happen next in this phase: an attempt, the end of one, or the end of idleness. */
  private timer: Timer | undefined;
  private silence: Timer | undefined;
  private renewal: Timer | undefined;
  private renewing = false;

  constructor(private readonly options: ConnectionOptions) {}

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

  /** Begins a subscription, and connects if need be. */
  attach(channel: Channel): void {
    if (this.phase === "closed") {
      channel.failed(new ConnectionError("The client is closed."));
      return;
    }
    const held: Held = { channel, name: "", failures: 0, retry: undefined };
    this.held.set(channel, held);
    channel.connection(this.state);
    if (this.phase === "idle") this.dial();
    else if (this.carries) {
      // An open connection's timer is the one that ends it for want of subscriptions.
      if (this.phase === "open") this.cancelTimer();
      this.subscribe(held);
    }
  }

  /** Ends a subscription. */
  detach(channel: Channel): void {
    const held = this.held.get(channel);
    if (held === undefined) return;
    this.release(held);
    if (this.carries && held.name !== "") {
      this.send({ type: "unsubscribe", id: held.name });
    }
    if (this.held.size === 0) this.linger();
  }

  /** Makes the next attempt now: the network has come back. */
  retryNow(): void {
    if (this.phase === "waiting") this.dial();
  }

  /** Asks whether the connection still stands, and gives it up soon if not. */
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
    for (const held of [...this.held.values()]) this.fail(held, error);
  }

  private enter(phase: Connection["phase"]): void {
    this.phase = phase;
    for (const { channel } of [...this.held.values()]) channel.connection(this.state);
    for (const listener of [...this.listeners]) listener(this.state);
  }

  // Dialling

  private dial(): void {
    this.drop();
    this.attempt += 1;
    const { attempt } = this;
    this.lastError = undefined;
    this.enter("dialing");
    this.timer = this.options.clock.after(DIAL_TIMEOUT_MS, () => this.lost(BROKEN));
    this.options.credentials.hello().then(
      (members) => {
        if (attempt === this.attempt) this.connect(attempt, members);
      },
      () => {
        // The page's own server is away; it is asked again with the next attempt.
        if (attempt === this.attempt) this.lost(BROKEN);
      },
    );
  }

  private connect(attempt: number, hello: Record<string, string>): void {
    const current = () => attempt === this.attempt;
    this.socket = this.options.dial(socketUrl(this.options.url), {
      opened: () => {
        if (!current()) return;
        this.carries = true;
        this.send({ type: "hello", ...hello });
        for (const held of this.held.values()) this.subscribe(held);
      },
      message: (text) => {
        if (current()) this.take(text);
      },
      closed: (code) => {
        if (current()) this.lost(code);
      },
    });
  }

  /** Leaves the socket, whatever state it is in. */
  private drop(): void {
    this.attempt += 1;
    this.cancelTimer();
    this.options.clock.cancel(this.silence);
    this.options.clock.cancel(this.renewal);
    this.named.clear();
    for (const held of this.held.values()) {
      this.options.clock.cancel(held.retry);
      held.name = "";
    }
    this.carries = false;
    this.socket?.close();
    this.socket = undefined;
  }

  private lost(code: number): void {
    const error = this.lastError;
    this.drop();
    if (this.held.size === 0) {
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

  /** The token was refused: another one may be taken, once. */
  private unauthenticated(error: Problem | undefined): void {
    this.refusals += 1;
    if (this.options.credentials.canRenew && this.refusals === 1) {
      this.options.credentials.forget();
      this.wait(0);
      return;
    }
    this.refusals = 0;
    this.end(new ServerError(error ?? { code: "invalid_credentials" }, 401));
    // Whoever subscribes later may have better luck: a sign-in may have happened meanwhile.
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
    const frame = decode(JSON.parse(text)) as Frame;
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
    if (this.held.size === 0) this.linger();
  }

  private pass(frame: SubscriptionFrame): void {
    const held = this.named.get(frame.id);
    if (held === undefined) return;
    if (frame.type === "end") {
      this.ended(held, frame.error);
    } else if (held.channel.frame(frame)) {
      held.failures = 0;
    } else {
      this.send({ type: "unsubscribe", id: held.name });
      this.subscribe(held);
    }
  }

  private ended(held: Held, problem: Problem | null): void {
    this.named.delete(held.name);
    held.name = "";
    if (problem?.code === "token_expired" && this.options.credentials.canRenew) {
      this.renew();
    } else {
      const error = new ServerError(problem ?? { code: "subscription_ended" }, 410);
      this.fail(held, error);
    }
  }

  private refused(frame: ErrorFrame): void {
    if (frame.id === null) {
      // The close code follows and decides.
      this.lastError = frame.error;
      return;
    }
    if (frame.id === RENEWAL) this.renewing = false;
    const held = this.named.get(frame.id);
    if (held === undefined) return;
    this.named.delete(held.name);
    held.name = "";
    const error = new ServerError(frame.error, frame.error.status ?? 500);
    if (error.code === "token_expired" && this.options.credentials.canRenew) this.renew();
    else if (error.isTemporary) this.again(held);
    else this.fail(held, error);
  }

  // Subscriptions

  private subscribe(held: Held): void {
    this.options.clock.cancel(held.retry);
    this.named.delete(held.name);
    this.names += 1;
    held.name = `s${this.names}`;
    this.named.set(held.name, held);
    this.send({ type: "subscribe", id: held.name, ...held.channel.subscribe() });
  }

  private again(held: Held): void {
    held.failures += 1;
    const ms = backoffMs(held.failures, this.options.clock.random());
    held.retry = this.options.clock.after(ms, () => this.subscribe(held));
  }

  private fail(held: Held, error: RillbaseError): void {
    this.release(held);
    held.channel.failed(error);
    if (this.held.size === 0 && this.phase === "open") this.linger();
  }

  private release(held: Held): void {
    this.options.clock.cancel(held.retry);
    this.held.delete(held.channel);
    this.named.delete(held.name);
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
        if (attempt === this.attempt) this.lost(BROKEN);
      },
    );
  }

  /** A new token counts: what had ended with the old one goes on. */
  private acknowledged(id: string): void {
    if (id !== RENEWAL) return;
    this.renewing = false;
    this.scheduleRenewal();
    for (const held of this.held.values()) if (held.name === "") this.subscribe(held);
  }

  // Silence

  /** Gives the connection up unless something is heard within so long; half way it asks. */
  private watch(ms: number): void {
    const { clock } = this.options;
    clock.cancel(this.silence);
    this.silence = clock.after(ms / 2, () => {
      this.ask();
      this.silence = clock.after(ms / 2, () => this.lost(BROKEN));
    });
  }

  private ask(): void {
    this.send({ type: "ping", id: "p" });
  }

  private send(message: Record<string, unknown>): void {
    // Messages are of JSON's kinds already: queries are encoded once, where they are made.
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
