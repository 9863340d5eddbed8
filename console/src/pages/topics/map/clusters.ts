/** Which publications a map draws as areas, and which it combines because they are close. */

import type { TopicPublication } from "../publications";
import { type Box, boxOf, type Projection } from "./projection";
import { type MapSize, type MapView, visible } from "./view";

/** An area that is large enough to see. */
export interface AreaMark {
  readonly publication: TopicPublication;
  /** In pixels. */
  readonly box: Box;
}

/** Publications at one spot, the newest first. */
export interface Cluster {
  readonly members: readonly TopicPublication[];
  /** Their areas, in map units. */
  readonly boxes: readonly Box[];
  /** The centre of the newest, in pixels. */
  readonly x: number;
  readonly y: number;
}

/** Smaller areas are drawn as points. */
const LEAST_AREA_PX = 28;
/** Points that are closer than this form one cluster. */
const CLUSTER_PX = 26;

export interface Marks {
  readonly areas: readonly AreaMark[];
  readonly clusters: readonly Cluster[];
}

/** Divides publications, newest first, into areas and clusters. */
export function marksOf(
  publications: readonly TopicPublication[],
  projection: Projection,
  view: MapView,
  size: MapSize,
): Marks {
  const seen = visible(view, size);
  const areas: AreaMark[] = [];
  const clusters: { members: TopicPublication[]; boxes: Box[]; x: number; y: number }[] = [];
  for (const publication of publications) {
    if (publication.geo === undefined) continue;
    const box = boxOf(publication.geo, projection);
    const pixels = pixelsOf(box, seen, view.scale);
    if (Math.max(pixels.right - pixels.left, pixels.bottom - pixels.top) >= LEAST_AREA_PX) {
      areas.push({ publication, box: pixels });
      continue;
    }
    const [x, y] = [(pixels.left + pixels.right) / 2, (pixels.top + pixels.bottom) / 2];
    const near = clusters.find((other) => Math.hypot(other.x - x, other.y - y) < CLUSTER_PX);
    near?.members.push(publication);
    near?.boxes.push(box);
    if (near === undefined) clusters.push({ members: [publication], boxes: [box], x, y });
  }
  return { areas, clusters };
}

function pixelsOf(box: Box, seen: Box, scale: number): Box {
  return {
    left: (box.left - seen.left) * scale,
    right: (box.right - seen.left) * scale,
    top: (box.top - seen.top) * scale,
    bottom: (box.bottom - seen.top) * scale,
  };
}

const NAMES = ["name", "label", "title", "id"];
const MAX_NAME = 24;

/** The label of a publication: a member of its data that reads like a name. */
export function nameOf({ data }: TopicPublication): string | null {
  if (data === null) return null;
  const texts = [...NAMES.map((name) => data[name]), ...Object.values(data)];
  const name = texts.find((text) => typeof text === "string" && text !== "");
  if (typeof name !== "string") return null;
  return name.length > MAX_NAME ? `${name.slice(0, MAX_NAME - 1)}…` : name;
}

/** The label of several publications: two names, or one and the number of others. */
export function namesOf(members: readonly TopicPublication[]): string {
  const names = [...new Set(members.flatMap((member) => nameOf(member) ?? []))];
  const [first = "", second] = names;
  if (second === undefined) return first;
  return names.length === 2 ? `${first}, ${second}` : `${first} and ${names.length - 1} more`;
}
