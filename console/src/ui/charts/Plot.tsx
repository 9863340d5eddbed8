/** A line, bar or area chart of one or more series. Arrow keys and the pointer read its values. */

import { type KeyboardEvent, type PointerEvent, useState } from "react";
import { numberText } from "../units";
import type { ChartData, ChartType } from "./chartData";
import { Marks, PLOT_HEIGHT, PLOT_WIDTH } from "./Marks";
import "./plot.css";

interface PlotProps {
  readonly label: string;
  readonly type: Exclude<ChartType, "number" | "table">;
  readonly data: ChartData;
}

const STEPS: Readonly<Record<string, number>> = { ArrowRight: 1, ArrowLeft: -1 };

export function Plot({ label, type, data }: PlotProps) {
  const { xs, ticks } = data;
  const [read, setRead] = useState<number | null>(null);
  const position = read === null ? null : Math.min(read, xs.length - 1);
  function press(event: KeyboardEvent) {
    const step = STEPS[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const from = position ?? (step > 0 ? -1 : xs.length);
    setRead(Math.max(0, Math.min(xs.length - 1, from + step)));
  }
  function point(event: PointerEvent<HTMLDivElement>) {
    const { left, width } = event.currentTarget.getBoundingClientRect();
    setRead(nearest(xs, (event.clientX - left) / width));
  }
  return (
    <div className="plot-frame">
      <Scale ticks={ticks} />
      <div
        className="plot-area"
        role="slider"
        tabIndex={0}
        aria-label={label}
        aria-valuemin={1}
        aria-valuemax={xs.length}
        aria-valuenow={(position ?? xs.length - 1) + 1}
        aria-valuetext={textAt(data, position ?? xs.length - 1)}
        onKeyDown={press}
        onPointerMove={point}
        onPointerLeave={() => setRead(null)}
        onBlur={() => setRead(null)}
      >
        <svg viewBox={`0 0 ${PLOT_WIDTH} ${PLOT_HEIGHT}`} preserveAspectRatio="none" aria-hidden>
          <Marks type={type} data={data} position={position} />
        </svg>
        {position !== null && <Reading data={data} position={position} />}
      </div>
      <XLabels xs={xs} />
      <Legend data={data} />
    </div>
  );
}

function nearest(xs: ChartData["xs"], at: number): number {
  let best = 0;
  xs.forEach((x, index) => {
    if (Math.abs(x.at - at) < Math.abs((xs[best]?.at ?? 0) - at)) best = index;
  });
  return best;
}

function textAt({ xs, series }: ChartData, position: number): string {
  const values = series.map(({ name, values }) => `${name} ${valueText(values[position])}`);
  return `${xs[position]?.label ?? ""}: ${values.join(", ")}`;
}

function valueText(value: number | null | undefined): string {
  return typeof value === "number" ? numberText(value) : "–";
}

function Scale({ ticks }: { readonly ticks: readonly number[] }) {
  return (
    <div className="plot-scale number" aria-hidden="true">
      {[...ticks].reverse().map((tick) => (
        <span key={tick}>{numberText(tick)}</span>
      ))}
    </div>
  );
}

/** More labels than this would run into one another. */
const MAX_LABELS = 4;
const MAX_BAR_LABELS = 6;

/** Returns labels that are far enough apart: all of a few, or from the first one to the last. */
function spread(xs: ChartData["xs"]): ChartData["xs"] {
  if (xs.length <= MAX_BAR_LABELS) return xs;
  const step = (xs.length - 1) / (MAX_LABELS - 1);
  const positions = Array.from({ length: MAX_LABELS }, (_, index) => Math.round(index * step));
  return positions.flatMap((position) => xs[position] ?? []);
}

function XLabels({ xs }: Pick<ChartData, "xs">) {
  const shown = spread(xs);
  return (
    <div className="plot-labels number" aria-hidden="true">
      {shown.map(({ key, label, at }) => (
        <span
          key={key}
          className="cut"
          style={{ left: `${at * 100}%`, maxWidth: `${100 / shown.length}%` }}
          data-end={at < 0.04 ? "left" : at > 0.96 ? "right" : undefined}
        >
          {label}
        </span>
      ))}
    </div>
  );
}

function Legend({ data: { series, omitted } }: { readonly data: ChartData }) {
  if (series.length < 2 && omitted === 0) return null;
  return (
    <ul className="plot-legend">
      {series.length > 1 &&
        series.map(({ name }, index) => (
          <li key={name}>
            <i data-series={index + 1} aria-hidden="true" /> <span className="cut">{name}</span>
          </li>
        ))}
      {omitted > 0 && <li className="soft">{numberText(omitted)} more are not shown</li>}
    </ul>
  );
}

interface ReadingProps {
  readonly data: ChartData;
  readonly position: number;
}

/** The values at one position, beside it. */
function Reading({ data: { xs, series }, position }: ReadingProps) {
  const { label, at } = xs[position] ?? { label: "", at: 0 };
  const side = at > 0.5 ? { right: `${(1 - at) * 100}%` } : { left: `${at * 100}%` };
  return (
    <div className="plot-reading" style={side} aria-hidden="true">
      <strong>{label}</strong>
      {series.map(({ name, values }, index) => (
        <span key={name} className="spread">
          <span className="cut">
            <i data-series={index + 1} /> {name}
          </span>
          <span className="number">{valueText(values[position])}</span>
        </span>
      ))}
    </div>
  );
}
