/** Rows as a chart, a number or a table, as chosen. */

import { Table } from "../Listing";
import { numberText } from "../units";
import {
  type ChartChoice,
  chartData,
  fieldsOf,
  fieldValue,
  numberOf,
  type Row,
  timeOf,
  totalOf,
} from "./chartData";
import { Plot } from "./Plot";
import "./plot.css";

interface ChartViewProps {
  readonly label: string;
  readonly chart: ChartChoice;
  readonly rows: readonly Row[];
  readonly textOf: (value: unknown) => string;
}

const MAX_TABLE_ROWS = 100;

export function ChartView(props: ChartViewProps) {
  const { label, chart, rows, textOf } = props;
  if (rows.length === 0) return <p className="soft chart-number">No rows.</p>;
  if (chart.type === "number") return <Figure chart={chart} rows={rows} />;
  if (chart.type === "table") return <RowTable rows={rows} textOf={textOf} />;
  const data = chartData(rows, chart, labelOf(props));
  if (data.series.length === 0) {
    return <p className="soft chart-number">{chart.y} has no numbers in these rows.</p>;
  }
  return <Plot label={label} type={chart.type} data={data} />;
}

const MINUTE_MS = 60_000;
const WEEK_MS = 7 * 24 * 60 * MINUTE_MS;
const CLOCK = { hour: "2-digit", minute: "2-digit" } as const;

/** Returns a time format that is precise enough for a span. */
function momentForm(spanMs: number): Intl.DateTimeFormat {
  if (spanMs < 5 * MINUTE_MS) return new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
  if (spanMs <= WEEK_MS) return new Intl.DateTimeFormat("en-GB", { weekday: "short", ...CLOCK });
  return new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
}

/** Returns the text of a position or a series. */
function labelOf({ chart, rows, textOf }: ChartViewProps): (value: unknown) => string {
  const { x } = chart;
  const times = x === null ? [] : rows.map((row) => timeOf(fieldValue(row, x)) ?? Number.NaN);
  const known = times.filter((time) => !Number.isNaN(time));
  const span =
    known.reduce((a, b) => Math.max(a, b), 0) - known.reduce((a, b) => Math.min(a, b), Infinity);
  const form = momentForm(span);
  return (value) => {
    const time = timeOf(value);
    return time === null ? textOf(value) : form.format(time);
  };
}

type FigureProps = Pick<ChartViewProps, "chart" | "rows">;

function Figure({ chart: { y }, rows }: FigureProps) {
  return (
    <p className="chart-number">
      <strong className="number">{numberText(totalOf(rows, y))}</strong>
      <span className="soft">{y ?? "rows"}</span>
    </p>
  );
}

function RowTable({ rows, textOf }: Pick<ChartViewProps, "rows" | "textOf">) {
  const fields = fieldsOf(rows);
  const numbers = fields.filter(({ kind }) => kind === "number").map(({ name }) => name);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: scrolling elements need the keyboard.
    <div className="chart-table" tabIndex={0}>
      <Table heads={fields.map(({ name }) => name)} numbers={numbers}>
        {rows.slice(0, MAX_TABLE_ROWS).map((row, place) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: rows have no identity but their index.
          <tr key={place}>
            {fields.map(({ name, kind }) => (
              <td key={name} className={kind === "number" ? "number" : "mono"}>
                {cellText(fieldValue(row, name), textOf)}
              </td>
            ))}
          </tr>
        ))}
      </Table>
    </div>
  );
}

function cellText(value: unknown, textOf: (value: unknown) => string): string {
  const number = numberOf(value);
  return number === null ? textOf(value) : numberText(number);
}
