/**
 * A map of publications, with the countries and cities of the world below them. There are no tiles,
 * which would be requests to other hosts.
 */

import { type MouseEvent, useMemo } from "react";
import type { Topic } from "../../api/types";
import { Icon } from "../../ui/Icon";
import { counted } from "../../ui/units";
import { useCities } from "./map/cities";
import { marksOf } from "./map/clusters";
import { Graticule, inView, Outlines } from "./map/Ground";
import { useLand } from "./map/land";
import { Labels } from "./map/MapLabels";
import { MapScale } from "./map/MapScale";
import { PublicationMarks } from "./map/Marks";
import { boxOf, projectionOf } from "./map/projection";
import { useMapView, ZOOM_STEP } from "./map/useMapView";
import { type MapSize, type MapView, visible } from "./map/view";
import type { TopicPublication } from "./publications";

/** The scale, in pixels per degree, from which outlines are detailed and cities are labelled. */
const CLOSE = 20;

interface MapProps {
  readonly topic: Topic;
  readonly publications: readonly TopicPublication[];
  readonly chosen: string | null;
  readonly onChoose: (id: string) => void;
  /** Called with the clicked location. */
  readonly onPoint: (x: number, y: number) => void;
}

export function TopicMap({ topic, publications, chosen, onChoose, onPoint }: MapProps) {
  const { projection, map, marks, countries, cities } = useTopicMap(topic, publications);
  const { view, size, drag } = map;
  function click(event: MouseEvent) {
    if (drag.wasDrag()) return;
    const [x, y] = projection.placeOf(...map.pointUnder(event));
    onPoint(round(x), round(y));
  }
  return (
    <div className="topic-map">
      <svg
        ref={map.element}
        role="application"
        aria-label={`${counted(publications.length, "publication")} on a map. Arrow keys move it, plus and minus zoom, 0 fits it.`}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard moves the map.
        tabIndex={0}
        onClick={click}
        onKeyDown={map.press}
        onPointerDown={drag.down}
        onPointerMove={drag.move}
        onPointerUp={drag.up}
        onPointerCancel={drag.up}
      >
        <g transform={transformOf(view, size)}>
          <Outlines countries={countries} />
        </g>
        <Graticule {...{ projection, view, size }} />
        <PublicationMarks {...marks} {...{ chosen, onChoose }} onOpen={map.show} />
        <Labels {...{ marks, countries, cities, view, size }} />
      </svg>
      <MapButtons map={map} />
      <MapScale projection={projection} view={view} />
    </div>
  );
}

function useTopicMap(topic: Topic, publications: readonly TopicPublication[]) {
  const projection = useMemo(() => projectionOf(topic), [topic]);
  const boxes = publications.flatMap(({ geo }) => (geo ? [boxOf(geo, projection)] : []));
  const map = useMapView(projection.isGeo ? boxes : [], projection.world);
  const { view, size } = map;
  const isClose = view.scale >= CLOSE;
  const land = useLand(projection, isClose);
  return {
    projection,
    map,
    marks: marksOf(publications, projection, view, size),
    countries: isClose ? inView(land, visible(view, size)) : land,
    cities: useCities(projection, isClose),
  };
}

function MapButtons({ map }: { readonly map: ReturnType<typeof useMapView> }) {
  return (
    <div className="map-buttons">
      <button
        type="button"
        className="button small icon"
        aria-label="Zoom in"
        onClick={() => map.zoom(ZOOM_STEP)}
      >
        <Icon name="plus" size={13} />
      </button>
      <button
        type="button"
        className="button small icon"
        aria-label="Zoom out"
        onClick={() => map.zoom(1 / ZOOM_STEP)}
      >
        <Icon name="minus" size={13} />
      </button>
      <button type="button" className="button small" disabled={map.isFitted} onClick={map.fit}>
        Fit
      </button>
    </div>
  );
}

/** Turns map units into pixels. */
function transformOf({ x, y, scale }: MapView, { width, height }: MapSize): string {
  return `translate(${width / 2 - x * scale} ${height / 2 - y * scale}) scale(${scale})`;
}

function round(value: number): number {
  return Math.round(value * 1e5) / 1e5;
}
