/** The visible part of a map: its centre, and how many pixels a unit has. */

import type { Box } from "./projection";

export interface MapView {
  readonly x: number;
  readonly y: number;
  readonly scale: number;
}

export interface MapSize {
  readonly width: number;
  readonly height: number;
}

/** The margin on each side, as a fraction of the content. */
const MARGIN = 0.18;
/** The maximum zoom, as a fraction of the world. */
export const LEAST_PART = 1 / 400_000;
/** The smallest fraction of the world that a view is fitted to. */
const LEAST_FITTED = 1 / 6_000;

/** Shows all boxes, or the world if there are none. */
export function fitted(
  boxes: readonly Box[],
  world: Box,
  size: MapSize,
  leastPart = LEAST_FITTED,
): MapView {
  if (boxes.length === 0) return clamped(around(world, size), world, size);
  const all = boxes.reduce((a, b) => ({
    left: Math.min(a.left, b.left),
    top: Math.min(a.top, b.top),
    right: Math.max(a.right, b.right),
    bottom: Math.max(a.bottom, b.bottom),
  }));
  const least = (world.right - world.left) * leastPart;
  const room = Math.max(all.right - all.left, all.bottom - all.top, least) * MARGIN;
  const roomy = {
    left: all.left - room,
    top: all.top - room,
    right: all.right + room,
    bottom: all.bottom + room,
  };
  return clamped(around(roomy, size), world, size);
}

/** The least part of the view that content fills before it is fitted again. */
const LEAST_FILLED = 0.35;

/** Keeps a fitted view while all boxes are in it and fill it, so that moving content does not move it. */
export function refitted(
  before: MapView | null,
  boxes: readonly Box[],
  world: Box,
  size: MapSize,
): MapView {
  const next = fitted(boxes, world, size);
  if (before === null) return next;
  const isEqual = next.x === before.x && next.y === before.y && next.scale === before.scale;
  return isEqual || isFitting(before, next, boxes, size) ? before : next;
}

function isFitting(view: MapView, best: MapView, boxes: readonly Box[], size: MapSize): boolean {
  if (boxes.length === 0 || best.scale * LEAST_FILLED > view.scale) return false;
  const seen = visible(view, size);
  return boxes.every(
    ({ left, top, right, bottom }) =>
      left >= seen.left && right <= seen.right && top >= seen.top && bottom <= seen.bottom,
  );
}

function around({ left, top, right, bottom }: Box, { width, height }: MapSize): MapView {
  const scale = Math.min(width / (right - left), height / (bottom - top));
  return { x: (left + right) / 2, y: (top + bottom) / 2, scale };
}

/** Zooms so that the point under a pixel stays there. */
export function zoomed(
  view: MapView,
  factor: number,
  pixel: readonly [number, number],
  world: Box,
  size: MapSize,
): MapView {
  const scale = within(view.scale * factor, leastScale(world, size), mostScale(world, size));
  const [x, y] = pointAt(view, pixel, size);
  const turned = scale / view.scale;
  return clamped(
    { x: x + (view.x - x) / turned, y: y + (view.y - y) / turned, scale },
    world,
    size,
  );
}

/** Moves the map by pixels. */
export function moved(
  view: MapView,
  [right, down]: readonly [number, number],
  world: Box,
  size: MapSize,
): MapView {
  const { x, y, scale } = view;
  return clamped({ x: x - right / scale, y: y - down / scale, scale }, world, size);
}

/** The point of the map at a pixel. */
export function pointAt(
  { x, y, scale }: MapView,
  [across, down]: readonly [number, number],
  { width, height }: MapSize,
): readonly [number, number] {
  return [x + (across - width / 2) / scale, y + (down - height / 2) / scale];
}

/** The visible part of the map. */
export function visible({ x, y, scale }: MapView, { width, height }: MapSize): Box {
  const [wide, high] = [width / scale / 2, height / scale / 2];
  return { left: x - wide, top: y - high, right: x + wide, bottom: y + high };
}

/** Keeps the centre in the world, and the scale within bounds. */
function clamped(view: MapView, world: Box, size: MapSize): MapView {
  const scale = within(view.scale, leastScale(world, size), mostScale(world, size));
  return {
    x: within(view.x, world.left, world.right),
    y: within(view.y, world.top, world.bottom),
    scale,
  };
}

function leastScale({ left, top, right, bottom }: Box, { width, height }: MapSize): number {
  return Math.min(width / (right - left), height / (bottom - top));
}

function mostScale(world: Box, size: MapSize): number {
  return leastScale(world, size) / LEAST_PART;
}

function within(value: number, least: number, most: number): number {
  return Math.max(least, Math.min(most, value));
}
