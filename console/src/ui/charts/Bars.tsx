/** A bar chart over time. Pointing at a bar shows its value. */

import { momentText } from "../Time";
import { Axes, HEIGHT, roundedUp } from "./Axes";

interface Point {
  readonly at: string;
  readonly value: number;
}

interface BarsProps {
  readonly label: string;
  readonly points: readonly Point[];
  /** How many periods fill the width. The current one is at the right edge. */
  readonly slots: number;
  /** The length of a period. */
  readonly stepMs: number;
  readonly format: (value: number) => string;
  /** Whether the sum of the values has a meaning. Otherwise the summary names the largest. */
  readonly isSum?: boolean;
}

const BAR = 10;
const GAP = 2;

export function Bars({ label, points, slots, stepMs, format, isSum = true }: BarsProps) {
  const most = Math.max(0, ...points.map(({ value }) => value));
  const max = points.length === 0 ? null : roundedUp(most);
  const last = Math.floor(Date.now() / stepMs);
  const sum = points.reduce((total, { value }) => total + value, 0);
  const summary = isSum ? `total ${format(sum)}` : `maximum ${format(most)}`;
  return (
    <Axes
      label={`${label}: ${summary}`}
      width={slots * (BAR + GAP)}
      max={max}
      spanMs={slots * stepMs}
      format={format}
    >
      {points.map(({ at, value }) => {
        const slot = slots - 1 - (last - Math.floor(new Date(at).getTime() / stepMs));
        const height = Math.max(1.5, (value / (max ?? 1)) * HEIGHT);
        return (
          <rect
            key={at}
            x={slot * (BAR + GAP)}
            y={HEIGHT - height}
            width={BAR}
            height={height}
            rx="1.5"
          >
            <title>{`${momentText(at)}: ${format(value)}`}</title>
          </rect>
        );
      })}
    </Axes>
  );
}
