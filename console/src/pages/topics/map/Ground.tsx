/** The ground of a map: countries with their names, and lines at round values. */

import { memo } from "react";
import { type City, isWithin } from "./cities";
import type { LabelRequest } from "./labels";
import type { Country } from "./land";
import type { Box, Projection } from "./projection";
import { roundStep } from "./steps";
import { type MapSize, type MapView, visible } from "./view";

interface GroundProps {
  readonly projection: Projection;
  readonly view: MapView;
  readonly size: MapSize;
}

const LINES = 8;
const CHARACTER_PX = 7;
const LABEL_PX = 14;
const LABEL_SHARE = 1.15;
const CITY_GAP_PX = 6;

/** Outlines do not change while the view does: only the group around them moves. */
export const Outlines = memo(function Outlines({
  countries,
}: {
  readonly countries: readonly Country[];
}) {
  return countries.map(({ name, path }, place) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: some countries have no name; they never move.
    <path key={`${name}${place}`} className="land" d={path} />
  ));
});

/** The countries that are in view. */
export function inView(countries: readonly Country[], seen: Box): readonly Country[] {
  return countries.filter(
    ({ box }) =>
      box.left < seen.right &&
      box.right > seen.left &&
      box.top < seen.bottom &&
      box.bottom > seen.top,
  );
}

/** The names that fit into their countries. */
export function countryLabels(
  countries: readonly Country[],
  { scale }: MapView,
  seen: Box,
): readonly LabelRequest[] {
  return countries
    .filter(
      ({ name, label }) =>
        name.length * CHARACTER_PX < label.width * scale * LABEL_SHARE &&
        LABEL_PX < label.height * scale &&
        isWithin(label, seen),
    )
    .map(({ name, label }) => ({ text: name, ...pixel(label, seen, scale) }));
}

/** The names of the cities in view, the largest first, beside their points. */
export function* cityLabels(
  cities: readonly City[],
  { scale }: MapView,
  seen: Box,
): Generator<LabelRequest> {
  for (const city of cities)
    if (isWithin(city, seen))
      yield { text: city.name, gap: CITY_GAP_PX, ...pixel(city, seen, scale) };
}

function pixel(point: { readonly x: number; readonly y: number }, seen: Box, scale: number) {
  return { x: (point.x - seen.left) * scale, y: (point.y - seen.top) * scale };
}

/** Lines of the same longitude and latitude, or x and y, with their values. */
export function Graticule({ projection, view, size }: GroundProps) {
  const seen = visible(view, size);
  const [left, bottom] = projection.placeOf(seen.left, seen.bottom);
  const [right, top] = projection.placeOf(seen.right, seen.top);
  const step = roundStep((right - left) / LINES, "up");
  const unit = projection.isGeo ? "°" : "";
  return (
    <>
      {roundValues(left, right, step).map((value) => {
        const x = (projection.x(value) - seen.left) * view.scale;
        return (
          <g key={`x${value}`}>
            <line className="graticule" x1={x} x2={x} y1={0} y2={size.height} />
            <text className="graticule-value" x={x + 3} y={size.height - 5}>
              {textOf(value, step)}
              {unit}
            </text>
          </g>
        );
      })}
      {roundValues(bottom, top, step).map((value) => {
        const y = (projection.y(value) - seen.top) * view.scale;
        return (
          <g key={`y${value}`}>
            <line className="graticule" x1={0} x2={size.width} y1={y} y2={y} />
            <text className="graticule-value" x={4} y={y - 3}>
              {textOf(value, step)}
              {unit}
            </text>
          </g>
        );
      })}
    </>
  );
}

function roundValues(from: number, to: number, step: number): number[] {
  const first = Math.ceil(from / step);
  const count = Math.max(0, Math.floor(to / step) - first + 1);
  return Array.from({ length: count }, (_, place) => (first + place) * step);
}

function textOf(value: number, step: number): string {
  return value.toFixed(Math.max(0, -Math.floor(Math.log10(step) + 1e-9)));
}
