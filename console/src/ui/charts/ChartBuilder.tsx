/** Chooses how rows are drawn: the type, and the fields for x, y and the series. */

import { useMemo } from "react";
import { Field, Segments, Select } from "../Field";
import { ChartView } from "./ChartView";
import {
  type ChartChoice,
  type ChartType,
  fieldsOf,
  type Row,
  type Field as RowField,
  suggestedChart,
} from "./chartData";
import "./plot.css";

const TYPES: readonly (readonly [ChartType, string])[] = [
  ["line", "Line"],
  ["bar", "Bar"],
  ["area", "Area"],
  ["number", "Number"],
  ["table", "Table"],
];

interface ChartBuilderProps {
  /** Null: what the rows suggest. */
  readonly chart: ChartChoice | null;
  readonly rows: readonly Row[];
  readonly textOf: (value: unknown) => string;
  readonly onChange: (chart: ChartChoice) => void;
}

export function ChartBuilder({ chart, rows, textOf, onChange }: ChartBuilderProps) {
  const fields = useMemo(() => fieldsOf(rows), [rows]);
  const shown = chart ?? suggestedChart(fields);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: scrolling elements need the keyboard.
    <div className="chart-builder" tabIndex={0}>
      <div className="chart-choices">
        <Segments
          label="Chart type"
          options={TYPES}
          value={shown.type}
          onChange={(type) => onChange({ ...shown, type })}
        />
        <FieldChoices chart={shown} fields={fields} onChange={onChange} />
      </div>
      <ChartView label="Chart of the result" chart={shown} rows={rows} textOf={textOf} />
    </div>
  );
}

interface FieldChoicesProps {
  readonly chart: ChartChoice;
  readonly fields: readonly RowField[];
  readonly onChange: (chart: ChartChoice) => void;
}

function FieldChoices({ chart, fields, onChange }: FieldChoicesProps) {
  if (chart.type === "table") return null;
  const all = fields.map(({ name }) => name);
  const numbers = fields.filter(({ kind }) => kind === "number").map(({ name }) => name);
  const choose = (member: "x" | "y" | "series") => (name: string) =>
    onChange({ ...chart, [member]: name === "" ? null : name });
  const options = (names: readonly string[], none: string, selected: string | null) => {
    const listed = selected === null || names.includes(selected) ? names : [selected, ...names];
    return [["", none] as const, ...listed.map((name) => [name, name] as const)];
  };
  return (
    <>
      {chart.type !== "number" && (
        <Field label="x">
          <Select
            options={options(all, "row number", chart.x)}
            value={chart.x ?? ""}
            onChange={choose("x")}
          />
        </Field>
      )}
      <Field label="y">
        <Select
          options={options(numbers, "number of rows", chart.y)}
          value={chart.y ?? ""}
          onChange={choose("y")}
        />
      </Field>
      {chart.type !== "number" && (
        <Field label="Series">
          <Select
            options={options(all, "none", chart.series)}
            value={chart.series ?? ""}
            onChange={choose("series")}
          />
        </Field>
      )}
    </>
  );
}
