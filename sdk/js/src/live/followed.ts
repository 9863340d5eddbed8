/**
 * A followed subscription: the server's current answer, its state, and when listeners are notified.
 * Changes that arrive together cause one notification.
 */

import type { RillbaseError } from "../errors.js";
import type { Channel, ConnectionState } from "./connection.js";
import type { EventFrame, SubscriptionFrame } from "./frames.js";
import type { QueryState } from "./snapshot.js";
import { type Effect, View } from "./view.js";

/** Reports that a subscription failed to a program that may not look at its error. */
export type FailureReport = (subscription: string, error: RillbaseError) => void;

/** What a frame did, where it did something. */
export type Done = Exclude<Effect, { readonly kind: "broken" | "nothing" }>;

export abstract class Followed implements Channel {
  protected readonly view = new View();
  protected state: QueryState = "connecting";
  protected error: RillbaseError | null = null;
  private isReady = false;
  private isStale = false;
  private isOffline = false;
  private isScheduled = false;

  /** The members of the message that subscribes, but for `resume`. */
  protected abstract members(): Record<string, unknown>;

  /** Learns that the answer has changed. */
  protected abstract took(done: Done): void;

  /** Shows listeners what there is, if it is not what they were shown last. */
  protected abstract show(): void;

  /** Learns that the state is another one. */
  protected stateTurned(): void {}

  /** Tells the view of an event. */
  protected event(frame: EventFrame): Effect {
    return this.view.event(frame);
  }

  // What the connection tells

  subscribe(): Record<string, unknown> {
    this.view.interrupted();
    this.notReady();
    const { resume } = this.view;
    return { ...this.members(), ...(resume === undefined ? {} : { resume }) };
  }

  connection(state: ConnectionState): void {
    if (state !== "open") this.isReady = false;
    this.isOffline = state === "offline";
    this.stateChanged();
  }

  failed(error: RillbaseError): void {
    this.error = error;
    this.stateChanged();
  }

  frame(frame: SubscriptionFrame): boolean {
    switch (frame.type) {
      case "result":
        return this.take(this.view.result(frame));
      case "event":
        return this.take(this.event(frame));
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
    this.stateChanged();
    return true;
  }

  /** Takes what a frame did; false: it cannot have been so. */
  private take(effect: Effect): boolean {
    if (effect.kind === "broken") {
      this.view.reset();
      return false;
    }
    if (effect.kind !== "nothing") {
      this.took(effect);
      this.schedule();
    }
    return true;
  }

  /** Believes nothing until the server says again that matching is active. */
  protected notReady(): void {
    this.isReady = false;
    this.stateChanged();
  }

  protected stateChanged(): void {
    const before = this.state;
    this.state = this.currentState();
    if (this.state !== before) {
      this.stateTurned();
      this.schedule();
    }
  }

  private currentState(): QueryState {
    if (this.error !== null) return "failed";
    if (this.isReady) return this.isStale ? "stale" : "live";
    if (this.isOffline) return "offline";
    return this.isStale && this.view.hasResult ? "stale" : "connecting";
  }

  protected schedule(): void {
    if (this.isScheduled) return;
    this.isScheduled = true;
    queueMicrotask(() => {
      this.isScheduled = false;
      this.show();
    });
  }
}
