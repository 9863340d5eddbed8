/** Converts locations to map units: longitude and latitude by Mercator's projection, or a plane. */

import type { Area } from "rillbase";
import type { Topic } from "../../../api/types";

/** A rectangle, in the units of the topic or of the map. In a map, y grows downwards. */
export interface Box {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

export interface Projection {
  readonly isGeo: boolean;
  /** The whole world, in map units. */
  readonly world: Box;
  readonly x: (value: number) => number;
  readonly y: (value: number) => number;
  /** The location of a point of the map. */
  readonly placeOf: (x: number, y: number) => readonly [number, number];
}

/** Beyond this latitude, Mercator's projection grows without bound. */
const MAX_LATITUDE = 85;
export const METRES_PER_DEGREE = 111_320;
const RADIANS = Math.PI / 180;

const GEO: Projection = {
  isGeo: true,
  world: { left: -180, top: mercator(MAX_LATITUDE), right: 180, bottom: mercator(-MAX_LATITUDE) },
  x: (longitude) => longitude,
  y: mercator,
  placeOf: (x, y) => [x, (2 * Math.atan(Math.exp(-y * RADIANS)) - Math.PI / 2) / RADIANS],
};

/** Converts a length in degrees along the equator at a latitude. */
function mercator(latitude: number): number {
  const within = Math.max(-MAX_LATITUDE, Math.min(MAX_LATITUDE, latitude));
  return -Math.log(Math.tan(Math.PI / 4 + (within * RADIANS) / 2)) / RADIANS;
}

export function projectionOf(topic: Topic): Projection {
  if (topic.kind === "geo" || topic.grid === null) return GEO;
  const [left = 0, bottom = 0, right = 1, top = 1] = topic.grid.bounds;
  return {
    isGeo: false,
    world: { left, top: -top, right, bottom: -bottom },
    x: (value) => value,
    y: (value) => -value,
    placeOf: (x, y) => [x, -y],
  };
}

/** The box around an area, in map units. */
export function boxOf(area: Area, { isGeo, x, y }: Projection): Box {
  if ("box" in area) {
    const [left, bottom, right, top] = area.box;
    return { left: x(left), top: y(top), right: x(right), bottom: y(bottom) };
  }
  const [across, up] = area.center;
  const radius = isGeo ? (area.radius_m ?? 0) / METRES_PER_DEGREE : (area.radius ?? 0);
  const wide = isGeo ? radius / Math.max(0.1, Math.cos(up * RADIANS)) : radius;
  return {
    left: x(across - wide),
    top: y(up + radius),
    right: x(across + wide),
    bottom: y(up - radius),
  };
}
