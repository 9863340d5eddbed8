/** A small line of the last values, without a scale; the figure beside it says how high it is. */

import "./charts.css";

const WIDTH = 240;
const HEIGHT = 40;
/** The line stays within the picture at its highest and lowest values. */
const MARGIN = 2;

interface SparklineProps {
  /** The accessible description. */
  readonly label: string;
  readonly values: readonly number[];
}

export function Sparkline({ label, values }: SparklineProps) {
  const points = pointsOf(values);
  return (
    <svg
      className="sparkline"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      <polygon className="area-under" points={`0,${HEIGHT} ${points} ${WIDTH},${HEIGHT}`} />
      <polyline className="line" points={points} />
    </svg>
  );
}

function pointsOf(values: readonly number[]): string {
  const max = Math.max(...values, 0) || 1;
  const step = WIDTH / Math.max(1, values.length - 1);
  const room = HEIGHT - 2 * MARGIN;
  return values
    .map((value, index) => {
      const y = HEIGHT - MARGIN - (Math.max(0, value) / max) * room;
      return `${(index * step).toFixed(1)},${y.toFixed(1)}`;
    })
    .join(" ");
}
