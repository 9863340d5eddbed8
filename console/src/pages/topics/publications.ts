/** Which publications of a topic its page shows, and whether a new one would be among them. */

import type { Place, Publication } from "rillbase";
import type { Topic } from "../../api/types";

export type TopicPublication = Publication<Readonly<Record<string, unknown>>>;

const MAX_SHOWN = 500;
const SHOWN_MS = 3_600_000;

/** Returns the place that the page subscribes to: everything, or an id; null without an id. */
export function placeOf(topic: Topic, id: string): Place | null {
  const [west = 0, south = 0, east = 1, north = 1] = topic.grid?.bounds ?? [];
  if (topic.kind === "geo") return { geo: { box: [-180, -85.05, 180, 85.05] } };
  if (topic.kind === "plane") return { geo: { box: [west, south, east, north] } };
  return id === "" ? null : { id };
}

/** Whether a publication under an id matches a subscription to an id. */
export function isMatch(topic: Topic, published: string, subscribed: string): boolean {
  if (topic.kind !== "hierarchy") return published === subscribed;
  return (
    `${published}.`.startsWith(`${subscribed}.`) || `${subscribed}.`.startsWith(`${published}.`)
  );
}

/** Adds a publication before the older ones. A renewed subscription repeats some. */
export function withPublication(
  shown: readonly TopicPublication[],
  publication: TopicPublication,
): readonly TopicPublication[] {
  if (shown.some(({ position }) => position === publication.position)) return shown;
  return [publication, ...shown].slice(0, MAX_SHOWN);
}

/** Returns the publications of the last hour that have not expired; the same array if all are. */
export function currentAt(
  shown: readonly TopicPublication[],
  now: number,
): readonly TopicPublication[] {
  const current = shown.filter(
    ({ at, expiresAt }) => expiresAt.getTime() > now && at.getTime() > now - SHOWN_MS,
  );
  return current.length === shown.length ? shown : current;
}
