/**
 * The rows of an aggregate, kept up to date for those who listen. Nothing is written locally here,
 * so what is shown is what the server has told.
 */

import { encode } from "../ejson/encode.js";
import type { RillbaseError } from "../errors.js";
import type { Plain } from "../local/paths.js";
import type { Channel, Connection, ConnectionState } from "./connection.js";
import type { SubscriptionFrame } from "./frames.js";
import type { QueryState } from "./snapshot.js";
import { type Effect, View } from "./view.js";

export interface RowsSnapshot<R> {
  /** In the order of what they are grouped by. */
  readonly rows: readonly R[];
  readonly state: QueryState;
  /** Whether there has been an answer at all. */
  readonly hasAnswer: boolean;
  /** Why it has ended, with the state `failed`. */
  readonly error: RillbaseError | null;
}

export const NO_ROWS: RowsSnapshot<never> = {
  rows: [],
  state: "connecting",
  hasAnswer: false,
  error: null,
};

export class LiveRows implements Channel {
  /** What listeners were shown last. A new object whenever it is not the same. */
  snapshot: RowsSnapshot<unknown> = NO_ROWS;
  private readonly view = new View();
  private rows: readonly unknown[] = [];
  private error: RillbaseError | null = null;
  private isReady = false;
  private isStale = false;
  private isOffline = false;
  private isScheduled = false;
  private readonly listeners = new Set<() => void>();

  constructor(
    /** The members of the message that subscribes. */
    private readonly query: Plain,
    private readonly connectionOf: Connection,
  ) {}

  /** Calls the listener whenever `snapshot` has changed. Returns how to stop. */
  listen(listener: () => void): () => void {
    const isFirst = this.listeners.size === 0;
    this.listeners.add(listener);
    if (isFirst) {
      this.error = null;
      this.connectionOf.attach(this);
    }
    return () => {
      if (this.listeners.delete(listener) && this.listeners.size === 0) {
        this.connectionOf.detach(this);
        this.isReady = false;
      }
    };
  }

  subscribe(): Record<string, unknown> {
    this.view.interrupted();
    this.isReady = false;
    this.schedule();
    const { resume } = this.view;
    const members = encode(this.query) as Plain;
    return { ...members, ...(resume === undefined ? {} : { resume }) };
  }

  connection(state: ConnectionState): void {
    if (state !== "open") this.isReady = false;
    this.isOffline = state === "offline";
    this.schedule();
  }

  failed(error: RillbaseError): void {
    this.error = error;
    this.schedule();
  }

  frame(frame: SubscriptionFrame): boolean {
    switch (frame.type) {
      case "result":
        return this.took(this.view.result(frame));
      case "event":
        return this.took(this.view.event(frame));
      case "ready":
        this.view.ready(frame.resume);
        this.isReady = true;
        this.isStale = false;
        break;
      case "reset":
        this.view.reset();
        this.isReady = false;
        this.isStale = true;
        break;
      case "status":
        this.isStale = frame.state === "stale";
        break;
      case "end":
        break;
    }
    this.schedule();
    return true;
  }

  private took(effect: Effect): boolean {
    if (effect.kind === "broken") {
      this.view.reset();
      return false;
    }
    if (effect.kind !== "nothing") {
      this.rows = this.view.rows.map(({ document }) => document);
      this.schedule();
    }
    return true;
  }

  private schedule(): void {
    if (this.isScheduled) return;
    this.isScheduled = true;
    queueMicrotask(() => {
      this.isScheduled = false;
      this.show();
    });
  }

  private show(): void {
    const { rows, error, snapshot } = this;
    const state = this.state();
    const { hasResult: hasAnswer } = this.view;
    const isSame =
      snapshot.rows === rows &&
      snapshot.state === state &&
      snapshot.hasAnswer === hasAnswer &&
      snapshot.error === error;
    if (isSame) return;
    this.snapshot = { rows, state, hasAnswer, error };
    for (const listener of [...this.listeners]) listener();
  }

  private state(): QueryState {
    if (this.error !== null) return "failed";
    if (this.isReady) return this.isStale ? "stale" : "live";
    if (this.isOffline) return "offline";
    return this.isStale && this.view.hasResult ? "stale" : "connecting";
  }
}
