/** Topics: publishing, and receiving the publications at a place, past and future. */

import { type PointInTime, timeOf } from "./aggregate.js";
import { checkObject, checkOptions } from "./arguments.js";
import type { Core } from "./core.js";
import { encode, stringify } from "./ejson/encode.js";
import type { RillbaseError } from "./errors.js";
import type { CallOptions } from "./http/http.js";
import { LiveTopic, type SubscriptionState } from "./live/live-topic.js";
import type { Area, Publication } from "./live/publication.js";
import type { Plain } from "./local/paths.js";
import { newKey } from "./writes/calls.js";

/** An id, or an area in topics of the kinds `geo` and `plane`. */
export type Place = { readonly id: string } | { readonly geo: Area };

/** A subscription: a place and a span of time. */
export type TopicSubscription = Place & {
  /** Default: now. */
  readonly from?: PointInTime;
  /** When the subscription ends. Default: in an hour. */
  readonly to?: PointInTime;
  /** A filter on `data`. */
  readonly filter?: Plain;
  /** Whom it is for. */
  readonly subscriber?: string;
  /** Excludes what another such subscription of the same `subscriber` has matched. */
  readonly unseenOnly?: boolean;
};

/** Functions that are called when a subscription changes. */
export interface TopicSubscriptionOptions {
  /** Called when the state changes. */
  readonly onState?: (state: SubscriptionState) => void;
  /** Called when the subscription fails; by default the client's `onError`. */
  readonly onError?: (error: RillbaseError) => void;
}

/** A publication to publish. */
export type NewPublication<D> = Place & {
  readonly data?: D;
  /** When it happened. Default: now. */
  readonly at?: PointInTime;
  /** Default: the topic's `retention_s`. */
  readonly expiresInS?: number;
  readonly expiresAt?: PointInTime;
  /** Published once under this name within a day. Default: a new one. */
  readonly publicationId?: string;
};

/** A publication that was published. */
export interface Published {
  readonly publicationId: string;
  readonly position: string;
  /** The number of subscriptions that matched it. */
  readonly matchedSubscribers: number;
}

/** Names of options, and of the members that they become. */
const SUBSCRIPTION: Readonly<Record<string, string>> = {
  id: "topic_id",
  geo: "geo",
  from: "from",
  to: "to",
  filter: "filter",
  subscriber: "subscriber",
  unseenOnly: "unseen_only",
};
const PUBLICATION: Readonly<Record<string, string>> = {
  id: "id",
  geo: "geo",
  data: "data",
  at: "at",
  expiresInS: "expires_in_s",
  expiresAt: "expires_at",
  publicationId: "publication_id",
};
const TIMES = ["from", "to", "at", "expiresAt"];

/**
 * One topic: publishing, and receiving the publications at a place.
 *
 * @example
 * const traffic = db.topic("traffic");
 * const stop = traffic.subscribe({ id: "1.4", from: "-1h" }, ({ data }) => console.log(data));
 */
export class Topic<D extends object = Plain> {
  constructor(
    /** @internal */ readonly core: Core,
    /** The name of the topic. */
    readonly name: string,
  ) {}

  /**
   * Subscribes. Calls the listener with each publication at the place, those since `from` first,
   * until `to`. Returns a function that unsubscribes.
   */
  subscribe(
    subscription: TopicSubscription,
    listener: (publication: Publication<D>) => void,
    options: TopicSubscriptionOptions = {},
  ): () => void {
    checkOptions("subscribe()", options, ["onState", "onError"]);
    const request = { topic: this.name, ...members("subscribe()", subscription, SUBSCRIPTION) };
    const listeners = {
      publication: listener as (publication: Publication<unknown>) => void,
      state: options.onState,
      error: options.onError,
    };
    const live = new LiveTopic(encode(request) as Plain, listeners, this.core);
    live.open();
    return () => live.close();
  }

  /** Publishes. A retried call publishes once. */
  async publish(publication: NewPublication<D>, options: CallOptions = {}): Promise<Published> {
    const request = {
      method: "POST",
      path: `/v1/topics/${encodeURIComponent(this.name)}/publications`,
      body: stringify(members("publish()", publication, PUBLICATION)),
      idempotencyKey: newKey(),
    };
    const answer = (await this.core.http.call(request, options)) as {
      publication_id: string;
      position: string;
      matched_subscribers: number;
    };
    return {
      publicationId: answer.publication_id,
      position: answer.position,
      matchedSubscribers: answer.matched_subscribers,
    };
  }
}

/** Returns the members of a message or body. */
function members(call: string, values: object, names: Readonly<Record<string, string>>): Plain {
  checkObject(`What ${call} takes`, values);
  checkOptions(call, values, Object.keys(names));
  const pairs = Object.entries(values).filter(([, value]) => value !== undefined);
  return Object.fromEntries(
    pairs.map(([name, value]) => [
      names[name],
      TIMES.includes(name) ? timeOf(value as PointInTime) : value,
    ]),
  );
}
