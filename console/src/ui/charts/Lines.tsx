/** A line chart of the last minutes. New values enter at the right edge. */

import { Axes, HEIGHT, roundedUp } from "./Axes";

export interface Series {
  readonly name: string;
  readonly values: readonly (number | null)[];
}

interface LinesProps {
  readonly label: string;
  readonly series: readonly Series[];
  /** How many values fill the width. */
  readonly slots: number;
  /** The time between two values. */
  readonly stepMs: number;
  readonly format: (value: number) => string;
}

const WIDTH = 600;

export function Lines({ label, series, slots, stepMs, format }: LinesProps) {
  const values = series.flatMap((one) => one.values.filter((value) => value !== null));
  const max = values.length === 0 ? null : roundedUp(Math.max(...values));
  const latest = series
    .map((one) => `${one.name} ${format(one.values[one.values.length - 1] ?? 0)}`)
    .join(", ");
  return (
    <Axes
      label={`${label}: ${latest}`}
      width={WIDTH}
      max={max}
      spanMs={slots * stepMs}
      format={format}
    >
      {series.map((one, index) => {
        const points = pointsOf(one.values, slots, max ?? 1);
        return (
          <g key={one.name}>
            {index === 0 && points.length > 1 && (
              <polygon
                className="area-under"
                points={`${points.join(" ")} ${WIDTH},${HEIGHT} ${points[0]?.split(",")[0]},${HEIGHT}`}
              />
            )}
            <polyline className={index === 0 ? "line" : "line second"} points={points.join(" ")} />
          </g>
        );
      })}
    </Axes>
  );
}

function pointsOf(values: readonly (number | null)[], slots: number, max: number): string[] {
  const step = WIDTH / (slots - 1);
  const start = WIDTH - (values.length - 1) * step;
  return values.flatMap((value, index) =>
    value === null
      ? []
      : [`${(start + index * step).toFixed(1)},${(HEIGHT - (value / max) * HEIGHT).toFixed(1)}`],
  );
}
