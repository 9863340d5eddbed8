/**
 * A subscription to a topic. Publications are passed on once each and not stored: after a `reset`
 * the result repeats those that have not expired, so their positions are remembered until then.
 */

import type { Clock } from "../clock.js";
import type { RillbaseError } from "../errors.js";
import type { Plain } from "../local/paths.js";
import type { Connection } from "./connection.js";
import { type FailureReport, Followed } from "./followed.js";
import type { SubscriptionFrame } from "./frames.js";
import { type Publication, publicationsOf } from "./publication.js";
import type { QueryState } from "./snapshot.js";

/** `ended` at its `to`; otherwise as in snapshots of queries. */
export type SubscriptionState = QueryState | "ended";

export interface TopicListeners {
  readonly publication: (publication: Publication<unknown>) => void;
  readonly state: ((state: SubscriptionState) => void) | undefined;
  readonly error: ((error: RillbaseError) => void) | undefined;
}

interface TopicContext {
  readonly connection: Connection;
  readonly clock: Clock;
  readonly report: FailureReport;
}

const PLANNED_END = "subscription_ended";
/** Maximum difference between the clocks of the client and the server. */
const CLOCK_SKEW_MS = 60_000;

export class LiveTopic extends Followed {
  private arrived: Publication<unknown>[] = [];
  /** When the publications that have arrived expire, by position. */
  private readonly expiries = new Map<string, number>();
  private reported: SubscriptionState = "connecting";
  private isOpen = false;

  constructor(
    /** The members of the message that subscribes, as Extended JSON. */
    private readonly request: Plain,
    private readonly listeners: TopicListeners,
    private readonly context: TopicContext,
  ) {
    super();
  }

  open(): void {
    this.isOpen = true;
    this.context.connection.attach(this);
  }

  close(): void {
    this.isOpen = false;
    this.context.connection.detach(this);
  }

  override frame(frame: SubscriptionFrame): boolean {
    const isConsistent = super.frame(frame);
    if (isConsistent) for (const publication of publicationsOf(frame)) this.add(publication);
    return isConsistent;
  }

  protected members(): Record<string, unknown> {
    return this.request;
  }

  protected answerChanged(): void {
    this.view.discardRows();
  }

  protected show(): void {
    const { arrived } = this;
    this.arrived = [];
    for (const publication of arrived) if (this.isOpen) this.listeners.publication(publication);
    if (this.isOpen) this.reportState();
  }

  private reportState(): void {
    const { error } = this;
    const state = error?.code === PLANNED_END ? "ended" : this.state;
    if (state === this.reported) return;
    this.reported = state;
    this.listeners.state?.(state);
    if (state !== "failed" || error === null) return;
    if (this.listeners.error !== undefined) this.listeners.error(error);
    else this.context.report(`subscription to the topic "${this.request.topic}"`, error);
  }

  private add(publication: Publication<unknown>): void {
    const { position, expiresAt } = publication;
    if (this.expiries.has(position)) return;
    this.removeExpired();
    this.expiries.set(position, expiresAt.getTime());
    this.arrived.push(publication);
  }

  /** Removes from the oldest on, so that each is examined about once. */
  private removeExpired(): void {
    const now = this.context.clock.now() - CLOCK_SKEW_MS;
    for (const [position, expiry] of this.expiries) {
      if (expiry > now) return;
      this.expiries.delete(position);
    }
  }
}
