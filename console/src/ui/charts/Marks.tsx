/** The lines, areas and bars of a chart. */

import type { ChartData, ChartType } from "./chartData";

export const PLOT_WIDTH = 1_000;
export const PLOT_HEIGHT = 240;
/** The fraction of its position that a group of bars fills. */
const BAR_SHARE = 0.72;
const MAX_BAR = 90;

interface MarksProps {
  readonly type: Exclude<ChartType, "number" | "table">;
  readonly data: ChartData;
  readonly position: number | null;
}

export function Marks({ type, data, position }: MarksProps) {
  const { xs, series, ticks } = data;
  const y = scaleOf(ticks);
  const read = position === null ? undefined : xs[position];
  return (
    <>
      {ticks.map((tick) => (
        <line key={tick} className="rule" x1="0" x2={PLOT_WIDTH} y1={y(tick)} y2={y(tick)} />
      ))}
      {read !== undefined && (
        <line
          className="read-line"
          x1={read.at * PLOT_WIDTH}
          x2={read.at * PLOT_WIDTH}
          y1="0"
          y2={PLOT_HEIGHT}
        />
      )}
      {series.map(({ name, values }, index) =>
        type === "bar" ? (
          <Bars key={name} xs={xs} values={values} index={index} of={series.length} y={y} />
        ) : (
          <Line key={name} xs={xs} values={values} index={index} y={y} isArea={type === "area"} />
        ),
      )}
    </>
  );
}

type ToY = (value: number) => number;

/** Returns where a value is, between the lowest and the highest tick. */
function scaleOf(ticks: readonly number[]): ToY {
  const low = ticks[0] ?? 0;
  const high = ticks[ticks.length - 1] ?? 1;
  return (value) => PLOT_HEIGHT - ((value - low) / (high - low)) * PLOT_HEIGHT;
}

interface SeriesProps {
  readonly xs: ChartData["xs"];
  readonly values: readonly (number | null)[];
  readonly index: number;
  readonly y: ToY;
}

function Line({ xs, values, index, y, isArea }: SeriesProps & { readonly isArea: boolean }) {
  const points = values.flatMap((value, position) =>
    value === null ? [] : [[(xs[position]?.at ?? 0) * PLOT_WIDTH, y(value)] as const],
  );
  const text = points.map(([x, height]) => `${x.toFixed(1)},${height.toFixed(1)}`).join(" ");
  const [first] = points;
  const last = points[points.length - 1];
  if (first === undefined || last === undefined) return null;
  const base = y(0).toFixed(1);
  return (
    <g data-series={index + 1}>
      {isArea && <polygon points={`${first[0]},${base} ${text} ${last[0]},${base}`} />}
      {points.length === 1 ? (
        <line className="dot-mark" x1={first[0]} x2={first[0]} y1={first[1]} y2={first[1]} />
      ) : (
        <polyline points={text} />
      )}
    </g>
  );
}

function Bars({ xs, values, index, of, y }: SeriesProps & { readonly of: number }) {
  const whole = Math.min(MAX_BAR * of, (PLOT_WIDTH / Math.max(1, xs.length)) * BAR_SHARE);
  const width = whole / of;
  return (
    <g data-series={index + 1}>
      {values.map((value, position) => {
        if (value === null) return null;
        const { key = "", at = 0 } = xs[position] ?? {};
        const [top, bottom] = value >= 0 ? [y(value), y(0)] : [y(0), y(value)];
        return (
          <rect
            key={key}
            x={at * PLOT_WIDTH - whole / 2 + index * width}
            y={top}
            width={Math.max(1, width * 0.94)}
            height={Math.max(1, bottom - top)}
          />
        );
      })}
    </g>
  );
}
