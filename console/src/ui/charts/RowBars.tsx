/** Rows of numbers as a table, in which the bars of one measure can be compared at a glance. */

import { Double } from "rillbase";
import { flashClass, useFlashes } from "../flashes";
import { Table } from "../Listing";
import { numberText } from "../units";
import "./charts.css";

export interface BarRow {
  /** The row's key. */
  readonly key: string;
  /** The labels of the row, one for each heading. */
  readonly labels: readonly string[];
  readonly measures: Readonly<Record<string, unknown>>;
}

interface RowBarsProps {
  readonly heads: readonly string[];
  readonly measures: readonly string[];
  /** The measure whose bars are drawn. It comes first. */
  readonly drawn: string;
  readonly rows: readonly BarRow[];
  readonly textOf: (value: unknown) => string;
}

export function RowBars({ heads, measures, drawn, rows, textOf }: RowBarsProps) {
  const others = measures.filter((name) => name !== drawn);
  const shown = drawn === "" ? others : [drawn, ...others];
  const marked = rows.map(({ key, measures: found }) => ({
    key,
    mark: shown.map((name) => textOf(found[name])).join("\n"),
  }));
  const flashes = useFlashes(marked, JSON.stringify([heads, measures]));
  const most = Math.max(...rows.map((row) => amountOf(row.measures[drawn])), 0) || 1;
  return (
    <Table heads={[...heads, ...shown]} numbers={others}>
      {rows.map(({ key, labels, measures: found }) => (
        <tr key={key} className={flashClass(flashes.get(key) ?? 0)} data-key={key}>
          {labels.map((label, place) => (
            <td key={heads[place]} className="mono">
              {label}
            </td>
          ))}
          {shown.map((name) => (
            <td
              key={name}
              className={name === drawn ? "number bar-cell" : "number"}
              title={textOf(found[name])}
            >
              {name === drawn && (
                <span
                  className="bar"
                  style={{ width: `${(amountOf(found[name]) / most) * 100}%` }}
                />
              )}
              <span>{measureText(found[name], textOf)}</span>
            </td>
          ))}
        </tr>
      ))}
    </Table>
  );
}

function measureText(value: unknown, textOf: (value: unknown) => string): string {
  const plain = value instanceof Double ? value.value : value;
  return typeof plain === "number" ? numberText(plain) : textOf(plain);
}

/** Returns the length of a bar for a number in any form; other values have none. */
export function amountOf(value: unknown): number {
  const found = Number(value === null ? 0 : String(value));
  return Number.isFinite(found) ? Math.max(0, found) : 0;
}
