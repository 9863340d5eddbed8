/** The view of a map: it fits the content until the user moves it by pointer, wheel or keyboard. */

import { type KeyboardEvent, type PointerEvent, useEffect, useRef, useState } from "react";
import type { Box } from "./projection";
import {
  fitted,
  LEAST_PART,
  type MapSize,
  type MapView,
  moved,
  pointAt,
  refitted,
  zoomed,
} from "./view";

export const ZOOM_STEP = 1.6;
const PAN_PX = 60;
/** A pointer that moves less has clicked. */
const CLICK_PX = 4;
const KEYS: Readonly<Record<string, readonly [number, number]>> = {
  ArrowLeft: [PAN_PX, 0],
  ArrowRight: [-PAN_PX, 0],
  ArrowUp: [0, PAN_PX],
  ArrowDown: [0, -PAN_PX],
};
const ZOOMS: Readonly<Record<string, number>> = {
  "+": ZOOM_STEP,
  "=": ZOOM_STEP,
  "-": 1 / ZOOM_STEP,
};

type Pixel = readonly [number, number];

export function useMapView(boxes: readonly Box[], world: Box) {
  const element = useRef<SVGSVGElement>(null);
  const size = useSize(element);
  const [chosen, setChosen] = useState<MapView | null>(null);
  const fit = useFit(boxes, world, size);
  const view = chosen ?? fit;
  const change = (next: (view: MapView) => MapView) => setChosen(next(view));
  const zoom = (factor: number, pixel: Pixel = [size.width / 2, size.height / 2]) =>
    change((before) => zoomed(before, factor, pixel, world, size));
  const pan = (by: Pixel) => change((before) => moved(before, by, world, size));
  useWheel(element, zoom);

  function press(event: KeyboardEvent) {
    const { key, ctrlKey, metaKey, altKey } = event;
    if (ctrlKey || metaKey || altKey) return;
    const [by, factor] = [KEYS[key], ZOOMS[key]];
    if (by !== undefined) pan(by);
    else if (factor !== undefined) zoom(factor);
    else if (key === "0") setChosen(null);
    else return;
    event.preventDefault();
  }

  return {
    ...{ element, size, view, zoom, press },
    isFitted: chosen === null,
    fit: () => setChosen(null),
    show: (areas: readonly Box[]) => setChosen(fitted(areas, world, size, LEAST_PART)),
    drag: useDrag(pan, zoom),
    /** The point of the map under a pointer. */
    pointUnder: (event: { clientX: number; clientY: number }) =>
      pointAt(view, pixelOf(element.current, event), size),
  };
}

function useFit(boxes: readonly Box[], world: Box, size: MapSize): MapView {
  const [kept, setKept] = useState<{ view: MapView; size: MapSize; world: Box } | null>(null);
  const isSame = kept?.size === size && kept.world === world;
  const view = refitted(isSame ? kept.view : null, boxes, world, size);
  if (!isSame || view !== kept.view) setKept({ view, size, world });
  return view;
}

function pixelOf(element: Element | null, event: { clientX: number; clientY: number }): Pixel {
  const box = element?.getBoundingClientRect();
  return [event.clientX - (box?.left ?? 0), event.clientY - (box?.top ?? 0)];
}

/** Reports drags of one pointer and pinches of two. `wasDrag`: no click ends it. */
function useDrag(pan: (by: Pixel) => void, zoom: (factor: number, at: Pixel) => void) {
  const pointers = useRef(new Map<number, Pixel>());
  const travelled = useRef(0);
  function down(event: PointerEvent) {
    if (pointers.current.size === 0) travelled.current = 0;
    pointers.current.set(event.pointerId, [event.clientX, event.clientY]);
  }
  function move(event: PointerEvent<SVGSVGElement>) {
    const before = pointers.current.get(event.pointerId);
    if (before === undefined) return;
    const now: Pixel = [event.clientX, event.clientY];
    const by: Pixel = [now[0] - before[0], now[1] - before[1]];
    travelled.current += Math.hypot(...by);
    if (travelled.current < CLICK_PX) return;
    event.currentTarget.setPointerCapture(event.pointerId);
    const other = [...pointers.current].find(([id]) => id !== event.pointerId)?.[1];
    pointers.current.set(event.pointerId, now);
    if (other === undefined) return pan(by);
    const factor = distance(now, other) / Math.max(1, distance(before, other));
    zoom(factor, pixelOf(event.currentTarget, { clientX: other[0], clientY: other[1] }));
  }
  function up(event: PointerEvent) {
    pointers.current.delete(event.pointerId);
  }
  return { down, move, up, wasDrag: () => travelled.current >= CLICK_PX };
}

function distance([x, y]: Pixel, [otherX, otherY]: Pixel): number {
  return Math.hypot(x - otherX, y - otherY);
}

/** Zooms by wheel. React's own listener could not keep the page from scrolling. */
function useWheel(
  element: { readonly current: SVGSVGElement | null },
  zoom: (factor: number, at: Pixel) => void,
) {
  const latest = useRef(zoom);
  useEffect(() => {
    latest.current = zoom;
  });
  useEffect(() => {
    const map = element.current;
    if (map === null) return;
    const turn = (event: WheelEvent) => {
      event.preventDefault();
      latest.current(Math.exp(-event.deltaY / 400), pixelOf(map, event));
    };
    map.addEventListener("wheel", turn, { passive: false });
    return () => map.removeEventListener("wheel", turn);
  }, [element]);
}

function useSize(element: { readonly current: SVGSVGElement | null }): MapSize {
  const [size, setSize] = useState<MapSize>({ width: 800, height: 400 });
  useEffect(() => {
    const map = element.current;
    if (map === null) return;
    const sizes = new ResizeObserver(() => {
      const { width, height } = map.getBoundingClientRect();
      if (width > 0 && height > 0) setSize({ width, height });
    });
    sizes.observe(map);
    return () => sizes.disconnect();
  }, [element]);
  return size;
}
