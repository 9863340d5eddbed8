/** Shows the lines that an upload to a dataset has, and a first query. */

import { Code } from "../../ui/Code";
import { objectOf } from "../../ui/definition/DefinitionEditor";
import { formatExample, isObject, type Json, type JsonObject } from "../../ui/definition/exactJson";
import { columnsOf, idKeysOf, keyOf, tablesOf } from "./datasetModel";
import { examplesOf } from "./examples";
import type { Table } from "./types";

interface PreviewProps {
  readonly name: string;
  readonly value: Json | undefined;
}

export function DatasetPreview({ name, value }: PreviewProps) {
  if (value === undefined) return <p className="soft">The preview appears once this is JSON.</p>;
  const definition = objectOf(value);
  const tables = Object.entries(tablesOf(definition)).filter(
    (entry): entry is [string, JsonObject] => isObject(entry[1]),
  );
  const path = `/v1/datasets/${name === "" ? "…" : name}`;
  const lines = tables.map(([table, columns]) =>
    JSON.stringify({ [table]: exampleLine(columns, idKeysOf(definition)) }),
  );
  const [first] = tables;
  return (
    <>
      <h2>An upload</h2>
      <p className="soft">One line per row, as NDJSON:</p>
      <Code label="the upload" text={`POST ${path}/uploads\n\n${lines.join("\n")}`} />
      {first !== undefined && (
        <>
          <h2>A first query</h2>
          <Code label="the query" text={`POST ${path}/query\n\n${exampleQuery(...first)}`} />
        </>
      )}
    </>
  );
}

const EXAMPLES: Readonly<Record<string, Json>> = {
  string: "text",
  int32: 1,
  int64: 1,
  double: 1.5,
  bool: true,
  date: "2026-11-21",
  timestamp: "2026-11-21T16:30:00Z",
};

function exampleLine(table: JsonObject, idKeys: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(columnsOf(table)).map(([column, type]) => [
      column,
      exampleValue(String(type), idKeys),
    ]),
  );
}

function exampleValue(type: string, idKeys: JsonObject): Json {
  if (!type.startsWith("id:")) return EXAMPLES[type] ?? null;
  const parts = idKeys[type.slice(3)];
  if (!isObject(parts)) return EXAMPLES[String(parts)] ?? "text";
  return Object.fromEntries(
    Object.entries(parts).map(([part, partType]) => [part, EXAMPLES[String(partType)] ?? null]),
  );
}

function exampleQuery(name: string, table: JsonObject): string {
  const columns = columnsOf(table) as Table["columns"];
  const examples = examplesOf({ columns, key: keyOf(table), views: {} });
  return formatExample({ table: name, ...(examples.at(-1)?.members as JsonObject) });
}
