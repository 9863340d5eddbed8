/** The labels of a map: publications first, then cities, then countries. */

import type { City } from "./cities";
import { type Marks, namesOf } from "./clusters";
import { cityLabels, countryLabels } from "./Ground";
import { type Label, type LabelRequest, placedLabels } from "./labels";
import type { Country } from "./land";
import { radiusOf } from "./Marks";
import type { Box } from "./projection";
import { type MapSize, type MapView, visible } from "./view";

const MOST_NAMES = 60;
const MOST_CITIES = 50;
const MOST_COUNTRIES = 80;
const GAP_PX = 4;

interface LabelsProps {
  readonly marks: Marks;
  readonly countries: readonly Country[];
  readonly cities: readonly City[];
  readonly view: MapView;
  readonly size: MapSize;
}

export function Labels({ marks, countries, cities, view, size }: LabelsProps) {
  const seen = visible(view, size);
  const taken = pointBoxes(marks);
  const names = placedLabels(markLabels(marks), taken, MOST_NAMES);
  const towns = placedLabels(cityLabels(cities, view, seen), taken, MOST_CITIES);
  const lands = placedLabels(countryLabels(countries, view, seen), taken, MOST_COUNTRIES);
  return (
    <>
      <Texts labels={lands} className="land-name" />
      {towns.map(({ request: { text, x, y } }) => (
        <circle key={`${text}${x}${y}`} className="city-dot" cx={x} cy={y} r={2} />
      ))}
      <Texts labels={towns} className="city-name" />
      <Texts labels={names} className="place-name" />
    </>
  );
}

function markLabels({ areas, clusters }: Marks): readonly LabelRequest[] {
  return [
    ...clusters.map((cluster) => ({
      text: namesOf(cluster.members),
      x: cluster.x,
      y: cluster.y,
      gap: radiusOf(cluster) + GAP_PX,
    })),
    ...areas.map(({ publication, box }) => ({
      text: namesOf([publication]),
      x: (box.left + box.right) / 2,
      y: (box.top + box.bottom) / 2,
    })),
  ].filter(({ text }) => text !== "");
}

function pointBoxes({ clusters }: Marks): Box[] {
  return clusters.map((cluster) => {
    const radius = radiusOf(cluster);
    const { x, y } = cluster;
    return { left: x - radius, right: x + radius, top: y - radius, bottom: y + radius };
  });
}

interface TextsProps {
  readonly labels: readonly Label[];
  readonly className: string;
}

function Texts({ labels, className }: TextsProps) {
  return labels.map(({ request: { text }, x, y, anchor }) => (
    <text key={`${text}${x}${y}`} className={className} x={x} y={y} textAnchor={anchor}>
      {text}
    </text>
  ));
}
