/** Example queries, built from a table's columns. */

import type { Table } from "./types";

export type Members = Readonly<Record<string, unknown>>;

export interface Example {
  readonly title: string;
  readonly members: Members;
}

const NUMBERS = ["int32", "int64", "double"];
const SHOWN = 100;

export function examplesOf(table: Table | undefined): readonly Example[] {
  if (table === undefined) return [];
  const columns = Object.entries(table.columns);
  const text = columns.find(([name, type]) => type === "string" && !isWholeKey(table, name));
  const number = columns.find(([name, type]) => NUMBERS.includes(type) && !isWholeKey(table, name));
  return [
    { title: "Rows", members: { filter: {}, order: [[table.key[0], 1]], limit: SHOWN } },
    { title: "How many", members: { group_by: [], aggregates: { rows: { op: "count" } } } },
    ...(text === undefined ? [] : [{ title: `By ${text[0]}`, members: grouped(text[0], number) }]),
  ];
}

/** Grouping by the whole key would give each row a group of its own. */
function isWholeKey(table: Table, name: string): boolean {
  return table.key.length === 1 && table.key[0] === name;
}

function grouped(column: string, number: readonly [string, string] | undefined): Members {
  const sum = number && { [`${number[0]}_sum`]: { op: "sum", column: number[0] } };
  return {
    filter: {},
    group_by: [column],
    aggregates: { rows: { op: "count" }, ...sum },
    having: { rows: { $gte: 1 } },
    order: [["rows", -1]],
    limit: 20,
  };
}
