/** A figure over the last minutes, as a line that moves on. */

import "./charts.css";

export interface Series {
  readonly name: string;
  readonly values: readonly (number | null)[];
}

interface LinesProps {
  readonly label: string;
  readonly series: readonly Series[];
  /** How many values fill the width. */
  readonly span: number;
  readonly format: (value: number) => string;
}

const WIDTH = 600;
const HEIGHT = 120;
const TOP = 6;

export function Lines({ label, series, span, format }: LinesProps) {
  const known = series.flatMap(({ values }) => values.filter((value) => value !== null));
  const most = niceMost(Math.max(0, ...known));
  const last = series
    .map(({ name, values }) => `${name} ${format(values[values.length - 1] ?? 0)}`)
    .join(", ");
  return (
    <div className="chart">
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${label}: ${last}`}
      >
        {[0, 0.5, 1].map((part) => (
          <line
            key={part}
            className="rule"
            x1="0"
            x2={WIDTH}
            y1={heightOf(part * most, most)}
            y2={heightOf(part * most, most)}
          />
        ))}
        {series.map(({ name, values }, place) => {
          const points = placed(values, span, most);
          return (
            <g key={name}>
              {place === 0 && points.length > 1 && (
                <polygon
                  className="area-under"
                  points={`${points.join(" ")} ${WIDTH},${HEIGHT} ${points[0]?.split(",")[0]},${HEIGHT}`}
                />
              )}
              <polyline
                className={place === 0 ? "line" : "line second"}
                points={points.join(" ")}
              />
            </g>
          );
        })}
      </svg>
      <span className="most number">{format(most)}</span>
    </div>
  );
}

/** The newest value is at the right edge. */
function placed(values: readonly (number | null)[], span: number, most: number): string[] {
  const step = WIDTH / (span - 1);
  const begin = WIDTH - (values.length - 1) * step;
  return values.flatMap((value, place) =>
    value === null
      ? []
      : [`${(begin + place * step).toFixed(1)},${heightOf(value, most).toFixed(1)}`],
  );
}

function heightOf(value: number, most: number): number {
  return HEIGHT - 1 - (value / most) * (HEIGHT - TOP);
}

/** Returns a round number above all values, so that the scale does not tremble. */
function niceMost(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 5, 10].find((factor) => factor * power >= value) ?? 10) * power;
}
