/**
 * A map of publications. There are no tiles, which would be requests to other hosts: only a
 * graticule and the areas themselves, fitted to the content.
 */

import type { Topic } from "../../api/types";
import type { Area, Publication } from "./follow";

interface MapProps {
  readonly topic: Topic;
  readonly publications: readonly Publication[];
  readonly chosen: string | null;
  readonly onChoose: (id: string) => void;
  /** Called with a place that was clicked. */
  readonly onPoint: (x: number, y: number) => void;
}

interface Box {
  readonly left: number;
  readonly bottom: number;
  readonly right: number;
  readonly top: number;
}

const WORLD: Box = { left: -180, bottom: -80, right: 180, top: 80 };
const METRES_PER_DEGREE = 111_320;
const LINES = 8;
/** The map may be wider or higher than what it is fitted to: lines go on, by so many views. */
const BEYOND = 4;
const LEAST_DEGREES = 0.02;

export function TopicMap({ topic, publications, chosen, onChoose, onPoint }: MapProps) {
  const projection = projectionOf(topic, publications);
  const { view, x, y, squeeze } = projection;
  const width = view.right - view.left;
  const height = view.top - view.bottom;
  const around = within(whole(topic), view, BEYOND);
  return (
    // biome-ignore lint/a11y: places are typed as well, in the form beside the map.
    <svg
      className="topic-map"
      viewBox={`0 0 ${width * squeeze} ${height}`}
      preserveAspectRatio="xMidYMid meet"
      role="img"
      aria-label={`${publications.length} publications on a map`}
      onClick={(event) => {
        const matrix = event.currentTarget.getScreenCTM();
        if (matrix === null) return;
        const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix.inverse());
        onPoint(round(at.x / squeeze + view.left), round(view.top - at.y));
      }}
    >
      {graticule(around, width / LINES).map(({ key, vertical, at }) => (
        <line
          key={key}
          className="graticule"
          {...(vertical
            ? { x1: x(at), x2: x(at), y1: y(around.top), y2: y(around.bottom) }
            : { x1: x(around.left), x2: x(around.right), y1: y(at), y2: y(at) })}
        />
      ))}
      {publications.map((publication) => (
        <Shape
          key={publication.publication_id}
          publication={publication}
          projection={projection}
          isChosen={publication.publication_id === chosen}
          onChoose={onChoose}
        />
      ))}
    </svg>
  );
}

interface Projection {
  readonly isGeo: boolean;
  readonly view: Box;
  readonly squeeze: number;
  readonly x: (value: number) => number;
  readonly y: (value: number) => number;
}

function projectionOf(topic: Topic, publications: readonly Publication[]): Projection {
  const isGeo = topic.kind === "geo";
  const boxes = publications.flatMap(({ geo }) => (geo ? [boxOf(geo, isGeo)] : []));
  const view = fitted(boxes, whole(topic), isGeo);
  // A degree of longitude is shorter towards the poles.
  const squeeze = isGeo
    ? Math.max(0.2, Math.cos((((view.top + view.bottom) / 2) * Math.PI) / 180))
    : 1;
  return {
    ...{ isGeo, view, squeeze },
    x: (value) => (value - view.left) * squeeze,
    y: (value) => view.top - value,
  };
}

interface ShapeProps {
  readonly publication: Publication;
  readonly projection: Projection;
  readonly isChosen: boolean;
  readonly onChoose: (id: string) => void;
}

function Shape({ publication, projection, isChosen, onChoose }: ShapeProps) {
  const { publication_id: id, geo, data } = publication;
  if (!geo) return null;
  const { isGeo, view, x, y } = projection;
  const box = boxOf(geo, isGeo);
  const shape = {
    className: isChosen ? "place chosen" : "place",
    onClick: (event: { stopPropagation: () => void }) => {
      event.stopPropagation();
      onChoose(id);
    },
  };
  const title = <title>{data === null ? id : JSON.stringify(data)}</title>;
  const [left, top] = [x(box.left), y(box.top)];
  const [width, height] = [x(box.right) - left, box.top - box.bottom];
  if ("box" in geo) {
    return (
      <rect {...shape} x={left} y={top} width={width} height={height}>
        {title}
      </rect>
    );
  }
  // Small circles stay visible.
  const least = (view.right - view.left) / 160;
  return (
    <ellipse
      {...shape}
      cx={left + width / 2}
      cy={top + height / 2}
      rx={Math.max(width / 2, least)}
      ry={Math.max(height / 2, least)}
    >
      {title}
    </ellipse>
  );
}

function whole(topic: Topic): Box {
  if (topic.grid === null || topic.kind === "geo") return WORLD;
  const { bounds } = topic.grid;
  const [left = WORLD.left, bottom = WORLD.bottom, right = WORLD.right, top = WORLD.top] = bounds;
  return { left, bottom, right, top };
}

function boxOf(area: Area, isGeo: boolean): Box {
  if ("box" in area) {
    const [left, bottom, right, top] = area.box;
    return { left, bottom, right, top };
  }
  const [x, y] = area.center;
  const radius = isGeo ? (area.radius_m ?? 0) / METRES_PER_DEGREE : (area.radius ?? 0);
  const wide = isGeo ? radius / Math.max(0.1, Math.cos((y * Math.PI) / 180)) : radius;
  return { left: x - wide, bottom: y - radius, right: x + wide, top: y + radius };
}

/** Returns the visible region: all areas with a margin, or everything. */
function fitted(boxes: readonly Box[], everything: Box, isGeo: boolean): Box {
  if (boxes.length === 0 || !isGeo) return everything;
  const found = boxes.reduce((a, b) => ({
    left: Math.min(a.left, b.left),
    bottom: Math.min(a.bottom, b.bottom),
    right: Math.max(a.right, b.right),
    top: Math.max(a.top, b.top),
  }));
  const room = Math.max(found.right - found.left, found.top - found.bottom, LEAST_DEGREES) * 0.25;
  return {
    left: found.left - room,
    bottom: found.bottom - room,
    right: found.right + room,
    top: found.top + room,
  };
}

/** Returns a box enlarged by a margin on each side, within the valid range. */
function within(everything: Box, box: Box, more: number): Box {
  const wide = (box.right - box.left) * more;
  const high = (box.top - box.bottom) * more;
  return {
    left: Math.max(everything.left, box.left - wide),
    bottom: Math.max(everything.bottom, box.bottom - high),
    right: Math.min(everything.right, box.right + wide),
    top: Math.min(everything.top, box.top + high),
  };
}

/** Returns lines at round values, about one step apart. */
function graticule(view: Box, step: number): { key: string; vertical: boolean; at: number }[] {
  const power = 10 ** Math.floor(Math.log10(step));
  const even = ([1, 2, 5, 10].find((factor) => factor * power >= step) ?? 10) * power;
  const lines: { key: string; vertical: boolean; at: number }[] = [];
  for (let at = Math.ceil(view.left / even) * even; at < view.right; at += even)
    lines.push({ key: `x${at}`, vertical: true, at });
  for (let at = Math.ceil(view.bottom / even) * even; at < view.top; at += even)
    lines.push({ key: `y${at}`, vertical: false, at });
  return lines;
}

function round(value: number): number {
  return Math.round(value * 1e5) / 1e5;
}
