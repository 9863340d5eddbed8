/**
 * The cities of the world with more than 15,000 people, and the districts of large ones (GeoNames,
 * CC BY 4.0). Like the countries, they ship with the page; they are loaded when a map is zoomed in.
 */

import { useQuery } from "@tanstack/react-query";
import type { Box, Projection } from "./projection";

export interface City {
  readonly name: string;
  /** In map units. */
  readonly x: number;
  readonly y: number;
}

/** As in `cities.ts` beside the build's configuration. */
const DEGREES = 1_000;

/** The cities, the largest first; none while they are loading. */
export function useCities(projection: Projection, isClose: boolean): readonly City[] {
  const { data = [] } = useQuery({
    queryKey: ["cities"],
    queryFn: async () => citiesOf((await import("virtual:cities")).default, projection),
    enabled: projection.isGeo && isClose,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: Number.POSITIVE_INFINITY,
  });
  return projection.isGeo && isClose ? data : [];
}

function citiesOf(text: string, { x, y }: Projection): City[] {
  return text.split("\n").map((line) => {
    const [name = "", longitude, latitude] = line.split("\t");
    return { name, x: x(Number(longitude) / DEGREES), y: y(Number(latitude) / DEGREES) };
  });
}

export function isWithin({ x, y }: { readonly x: number; readonly y: number }, seen: Box): boolean {
  return x > seen.left && x < seen.right && y > seen.top && y < seen.bottom;
}
