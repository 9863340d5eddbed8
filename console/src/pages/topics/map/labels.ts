/** Places the labels of a map so that none covers another. */

import type { Box } from "./projection";

/** A label that would start at a point, in pixels. */
export interface LabelRequest {
  readonly text: string;
  readonly x: number;
  readonly y: number;
  /** The distance from the point. Labels without one are centred on it. */
  readonly gap?: number;
}

export interface Label {
  readonly request: LabelRequest;
  readonly x: number;
  readonly y: number;
  readonly anchor: "start" | "middle" | "end";
}

const CHARACTER_PX = 6.6;
const LINE_PX = 14;

/**
 * The most important labels that fit without overlap, at most a given number. They are
 * added to the boxes that are taken.
 */
export function placedLabels(
  requests: Iterable<LabelRequest>,
  taken: Box[],
  most: number,
): readonly Label[] {
  const placed: Label[] = [];
  for (const request of requests) {
    if (placed.length >= most) break;
    const label = candidates(request).find((candidate) => isFree(boxOf(candidate), taken));
    if (label === undefined) continue;
    taken.push(boxOf(label));
    placed.push(label);
  }
  return placed;
}

function candidates(request: LabelRequest): readonly Label[] {
  const { x, y, gap } = request;
  if (gap === undefined) return [{ request, x, y, anchor: "middle" }];
  return [
    { request, x: x + gap, y, anchor: "start" },
    { request, x: x - gap, y, anchor: "end" },
    { request, x, y: y - gap - LINE_PX / 2, anchor: "middle" },
    { request, x, y: y + gap + LINE_PX / 2, anchor: "middle" },
  ];
}

function boxOf({ request, x, y, anchor }: Label): Box {
  const width = request.text.length * CHARACTER_PX;
  const left = anchor === "start" ? x : anchor === "end" ? x - width : x - width / 2;
  return { left, right: left + width, top: y - LINE_PX / 2, bottom: y + LINE_PX / 2 };
}

function isFree(box: Box, taken: readonly Box[]): boolean {
  return taken.every(
    (other) =>
      box.right < other.left ||
      box.left > other.right ||
      box.bottom < other.top ||
      box.top > other.bottom,
  );
}
