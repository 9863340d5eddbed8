/**
 * The countries of the world, from the public domain (Natural Earth, 1:110 million, and 1:50 million
 * when the map is close). They come with the page, so that no request goes to another host, and are
 * loaded when a map is shown.
 */

import { useQuery } from "@tanstack/react-query";
import type { Feature, FeatureCollection, MultiPolygon, Polygon } from "geojson";
import type { Topology } from "topojson-specification";
import type { Box, Projection } from "./projection";

type Ring = readonly (readonly number[])[];

/** A country in map units. */
export interface Country {
  readonly name: string;
  readonly path: string;
  readonly box: Box;
  /** The position of its name, and the space for it. */
  readonly label: {
    readonly x: number;
    readonly y: number;
    readonly width: number;
    readonly height: number;
  };
}

/** The countries in the detail that the map needs, or in less while that is loading. */
export function useLand(projection: Projection, isClose: boolean): readonly Country[] {
  const shared = {
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: Number.POSITIVE_INFINITY,
  };
  const far = useQuery({
    ...shared,
    queryKey: ["land", "far"],
    queryFn: () => countries(import("world-atlas/countries-110m.json"), projection),
    enabled: projection.isGeo,
  });
  const close = useQuery({
    ...shared,
    queryKey: ["land", "close"],
    queryFn: () => countries(import("world-atlas/countries-50m.json"), projection),
    enabled: projection.isGeo && isClose,
  });
  if (!projection.isGeo) return NONE;
  return (isClose ? close.data : undefined) ?? far.data ?? NONE;
}

const NONE: readonly Country[] = [];

async function countries(
  loading: Promise<{ readonly default: unknown }>,
  projection: Projection,
): Promise<Country[]> {
  const [{ feature }, { default: atlas }] = await Promise.all([import("topojson-client"), loading]);
  const topology = atlas as unknown as Topology;
  const object = topology.objects.countries;
  if (object === undefined) return [];
  const { features } = feature(topology, object) as FeatureCollection<Polygon | MultiPolygon>;
  return features.map((country) => countryOf(country, projection));
}

function countryOf(
  { geometry, properties }: Feature<Polygon | MultiPolygon>,
  { x, y }: Projection,
): Country {
  const polygons: readonly Ring[][] =
    geometry.type === "Polygon" ? [geometry.coordinates] : geometry.coordinates;
  const projected = polygons.map((rings) =>
    rings.map((ring) =>
      joined(ring).map(([longitude = 0, latitude = 0]) => [x(longitude), y(latitude)]),
    ),
  );
  const outlines = projected.map(([outline = []]) => outline);
  const largest = outlines.reduce((a, b) => (areaOf(b) > areaOf(a) ? b : a), outlines[0] ?? []);
  return {
    name: String(properties?.name ?? ""),
    path: projected.flat().map(pathOf).join(""),
    box: boxAround(outlines.flat()),
    label: labelOf(largest),
  };
}

/** Only the ring around the South Pole extends beyond this latitude. */
const POLAR_LATITUDE = -85;

/** Keeps a ring that crosses the date line together, instead of drawing it across the world. */
function joined(ring: Ring): Ring {
  if (ring.some(([, latitude = 0]) => latitude < POLAR_LATITUDE)) return ring;
  let before = ring[0]?.[0] ?? 0;
  return ring.map(([longitude = 0, latitude = 0]) => {
    const turns = Math.round((before - longitude) / 360);
    before = longitude + 360 * turns;
    return [before, latitude];
  });
}

function pathOf(ring: Ring): string {
  return `M${ring.map(([x = 0, y = 0]) => `${x.toFixed(3)} ${y.toFixed(3)}`).join("L")}Z`;
}

function areaOf(ring: Ring): number {
  return Math.abs(crosses(ring).reduce((sum, { cross }) => sum + cross, 0));
}

function boxAround(points: Ring): Box {
  const box = { left: 1e3, top: 1e3, right: -1e3, bottom: -1e3 };
  for (const [x = 0, y = 0] of points) {
    box.left = Math.min(box.left, x);
    box.right = Math.max(box.right, x);
    box.top = Math.min(box.top, y);
    box.bottom = Math.max(box.bottom, y);
  }
  return box;
}

/** The centroid of a ring, and the size of the box around it. */
function labelOf(ring: Ring): Country["label"] {
  const box = boxAround(ring);
  const parts = crosses(ring);
  const area = parts.reduce((sum, { cross }) => sum + cross, 0) || 1;
  const middle = (axis: "x" | "y") =>
    parts.reduce((sum, part) => sum + part[axis] * part.cross, 0) / (3 * area);
  return {
    x: middle("x"),
    y: middle("y"),
    width: box.right - box.left,
    height: box.bottom - box.top,
  };
}

/** For each edge of a ring, its part of the area and the sum of its ends. */
function crosses(ring: Ring): { x: number; y: number; cross: number }[] {
  return ring.map(([x = 0, y = 0], place) => {
    const [nextX = 0, nextY = 0] = ring[(place + 1) % ring.length] ?? [];
    return { x: x + nextX, y: y + nextY, cross: x * nextY - nextX * y };
  });
}
