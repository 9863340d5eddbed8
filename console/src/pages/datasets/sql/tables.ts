/** What a statement over a dataset can name, and an example of one. */

import { examplesOf } from "../examples";
import type { Dataset, IdKey } from "../types";
import { quoted } from "./words";

export interface SqlColumn {
  readonly name: string;
  readonly type: string;
}

export interface SqlTable {
  readonly name: string;
  readonly columns: readonly SqlColumn[];
}

const TYPES: Readonly<Record<string, string>> = {
  string: "VARCHAR",
  int32: "INTEGER",
  int64: "BIGINT",
  double: "DOUBLE",
  bool: "BOOLEAN",
  date: "DATE",
  timestamp: "TIMESTAMPTZ",
};

/** Returns the tables of a dataset, their views, and the tables of its ID-keys. */
export function sqlTables({ tables, id_keys: idKeys }: Dataset): SqlTable[] {
  const typeOf = (type: string) =>
    type.startsWith("id:") ? keyType(idKeys[type.slice(3)]) : (TYPES[type] ?? type);
  const own = Object.entries(tables).flatMap(([name, { columns, views }]) => {
    const all = Object.entries(columns).map(([column, type]) => ({
      name: column,
      type: typeOf(type),
    }));
    const viewTables = Object.entries(views).map(([view, { columns: names }]) => ({
      name: `${name}__${view}`,
      columns: all.filter((column) => names.includes(column.name)),
    }));
    return [{ name, columns: all }, ...viewTables];
  });
  const keyTables = Object.entries(idKeys).map(([name, key]) => ({
    name,
    columns: [
      { name: "key", type: keyType(key) },
      { name: "id", type: "BIGINT" },
    ],
  }));
  return [...own, ...keyTables];
}

function keyType(key: IdKey | undefined): string {
  if (key === undefined || typeof key === "string") return TYPES[key ?? "string"] ?? "VARCHAR";
  const parts = Object.entries(key).map(([part, type]) => `${part} ${TYPES[type] ?? type}`);
  return `STRUCT(${parts.join(", ")})`;
}

/** Returns a statement over the first table: its largest groups by a text, or else its rows. */
export function exampleOf({ tables }: Dataset): string {
  const [name, table] = Object.entries(tables)[0] ?? [];
  if (name === undefined || table === undefined) return "";
  const grouped = examplesOf(table).find(({ title }) => title.startsWith("By "));
  const [column] = (grouped?.members.group_by ?? []) as readonly string[];
  if (column === undefined)
    return `SELECT *\nFROM ${quoted(name)}\nORDER BY ${quoted(table.key[0] ?? "")}\nLIMIT 100`;
  return [
    `SELECT ${quoted(column)}, count(*) AS "rows"`,
    `FROM ${quoted(name)}`,
    `GROUP BY ${quoted(column)}`,
    `ORDER BY "rows" DESC`,
    "LIMIT 20",
  ].join("\n");
}
