/** The frame of a chart over time: a scale from 0 to `max` at the left, a span of time below. */

import type { ReactNode } from "react";
import "./charts.css";

/** Returns a round number that is not less, so that the scale does not change with each value. */
export function roundedUp(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 3, 4, 5, 6, 8, 10].find((factor) => factor * power >= value) ?? 10) * power;
}

/** The height of a chart in units of its `viewBox`, which the width scales to the page. */
export const HEIGHT = 120;

interface AxesProps {
  readonly label: string;
  readonly width: number;
  /** The top of the scale. Without it, there are no values yet, and the scale is empty. */
  readonly max: number | null;
  readonly spanMs: number;
  readonly format: (value: number) => string;
  readonly children: ReactNode;
}

export function Axes({ label, width, max, spanMs, format, children }: AxesProps) {
  return (
    <div className="chart">
      <div className="plot">
        <svg
          viewBox={`0 0 ${width} ${HEIGHT}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={label}
        >
          {[0, HEIGHT / 2, HEIGHT].map((y) => (
            <line key={y} className="rule" x1="0" x2={width} y1={y} y2={y} />
          ))}
          {children}
        </svg>
        <span className="scale number">
          <span>{max === null ? "" : format(max)}</span>
          {max === null && <span className="no-data">no data yet</span>}
          <span>{format(0)}</span>
        </span>
      </div>
      <div className="span-of-time number">
        <span>{lengthText(spanMs)} ago</span>
        <span>now</span>
      </div>
    </div>
  );
}

const UNITS: readonly (readonly [string, number])[] = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1_000],
];

/** Returns a length in the largest unit in which it is at least two, such as `24 hours`. */
function lengthText(ms: number): string {
  const [unit, length] = UNITS.find(([, length]) => ms >= 2 * length) ?? ["second", 1_000];
  return `${Math.round(ms / length)} ${unit}s`;
}
