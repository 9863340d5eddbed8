/** Amounts over time as bars; each says what it is. */

import { momentText } from "../Time";
import "./charts.css";

interface Point {
  readonly at: string;
  readonly value: number;
}

interface BarsProps {
  readonly label: string;
  readonly points: readonly Point[];
  /** How many periods fill the width; the last one is at the right edge. */
  readonly slots: number;
  /** How long a period lasts. */
  readonly stepMs: number;
  readonly format: (value: number) => string;
  /** Whether all of them together are an amount, too. */
  readonly isSum?: boolean;
}

const HEIGHT = 120;
const BAR = 10;
const GAP = 2;

export function Bars({ label, points, slots, stepMs, format, isSum = true }: BarsProps) {
  const most = Math.max(1, ...points.map(({ value }) => value));
  const width = slots * (BAR + GAP);
  const last = Math.floor(Date.now() / stepMs);
  const sum = points.reduce((total, { value }) => total + value, 0);
  const summary = isSum ? `${format(sum)} in all` : `${format(most)} at most`;
  return (
    <div className="chart">
      <svg
        viewBox={`0 0 ${width} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${label}: ${summary}`}
      >
        {points.map(({ at, value }) => {
          const place = slots - 1 - (last - Math.floor(new Date(at).getTime() / stepMs));
          const height = Math.max(1.5, (value / most) * (HEIGHT - 4));
          return (
            <rect
              key={at}
              x={place * (BAR + GAP)}
              y={HEIGHT - height}
              width={BAR}
              height={height}
              rx="1.5"
            >
              <title>{`${momentText(at)}: ${format(value)}`}</title>
            </rect>
          );
        })}
      </svg>
      <span className="most number">{format(most)}</span>
    </div>
  );
}
