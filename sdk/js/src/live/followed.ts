/**
 * A followed subscription: the server's current answer, its state, and when listeners are notified.
 * Changes that arrive together cause one notification.
 */

import type { RillbaseError } from "../errors.js";
import type { Channel, ConnectionState } from "./connection.js";
import type { EventFrame, SubscriptionFrame } from "./frames.js";
import type { QueryState } from "./snapshot.js";
import { type Effect, View } from "./view.js";

/** Reports a failed subscription to a program that may not check for errors. */
export type FailureReport = (subscription: string, error: RillbaseError) => void;

/** The effect of a frame, if it had one. */
export type Done = Exclude<Effect, { readonly kind: "broken" | "nothing" }>;

export abstract class Followed implements Channel {
  protected readonly view = new View();
  protected state: QueryState = "connecting";
  protected error: RillbaseError | null = null;
  private isReady = false;
  private isStale = false;
  private isOffline = false;
  private isScheduled = false;

  /** The members of the message that subscribes, without `resume`. */
  protected abstract members(): Record<string, unknown>;

  /** Handles a change of the answer. */
  protected abstract answerChanged(done: Done): void;

  /** Notifies listeners, unless they have received the current state already. */
  protected abstract show(): void;

  /** Called after the state has changed. */
  protected afterStateChange(): void {}

  /** Passes an event to the view. */
  protected event(frame: EventFrame): Effect {
    return this.view.event(frame);
  }

  // Events of the connection

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

  /** Processes the effect of a frame; false: the frames are inconsistent. */
  private take(effect: Effect): boolean {
    if (effect.kind === "broken") {
      this.view.reset();
      return false;
    }
    if (effect.kind !== "nothing") {
      this.answerChanged(effect);
      this.schedule();
    }
    return true;
  }

  /** The answer counts as outdated until the server reports again that matching is active. */
  protected notReady(): void {
    this.isReady = false;
    this.stateChanged();
  }

  protected stateChanged(): void {
    const before = this.state;
    this.state = this.currentState();
    if (this.state !== before) {
      this.afterStateChange();
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
