/** Publications of a topic, as they arrive in a subscription's frames. */

import type { EnvelopeFrame, EventFrame, SubscriptionFrame } from "./frames.js";

/** An area: `radius_m` in topics of the kind `geo`, `radius` in those of the kind `plane`. */
export type Area =
  | {
      readonly center: readonly [number, number];
      readonly radius_m?: number;
      readonly radius?: number;
    }
  | { readonly box: readonly [number, number, number, number] };

/** A publication of a topic. */
export interface Publication<D> {
  readonly publicationId: string;
  /** Identifies its place in the topic; positions cannot be compared for order. */
  readonly position: string;
  readonly at: Date;
  readonly expiresAt: Date;
  /** Its place, in topics with ids. */
  readonly id?: string;
  /** Its place, in topics with areas. */
  readonly geo?: Area;
  readonly data: D | null;
}

interface PublicationFrame {
  readonly position: string;
  readonly at: string;
  readonly expires_at: string;
  readonly topic_id?: string;
  readonly geo?: Area;
  readonly document?: unknown;
}

/** Returns the publications of a frame; most frames have none. */
export function publicationsOf(frame: SubscriptionFrame): Publication<unknown>[] {
  if (frame.type === "event") {
    return [publicationOf(frame.key, frame as EventFrame & PublicationFrame)];
  }
  if (frame.type !== "result") return [];
  const items = frame.items as readonly (EnvelopeFrame & PublicationFrame)[];
  return items.map((item) => publicationOf(item.id, item));
}

function publicationOf(id: unknown, frame: PublicationFrame): Publication<unknown> {
  return {
    publicationId: String(id),
    position: frame.position,
    at: new Date(frame.at),
    expiresAt: new Date(frame.expires_at),
    ...(frame.topic_id === undefined ? {} : { id: frame.topic_id }),
    ...(frame.geo === undefined ? {} : { geo: frame.geo }),
    data: frame.document ?? null,
  };
}
