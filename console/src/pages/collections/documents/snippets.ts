/** A query as code that can be pasted: curl, JavaScript, Python, GraphQL. */

import { encode, type Group } from "rillbase";
import type { Asked } from "./asked";

export type Language = "curl" | "JavaScript" | "Python" | "GraphQL";

export const LANGUAGES: readonly Language[] = ["curl", "JavaScript", "Python", "GraphQL"];

interface Wanted {
  readonly url: string;
  readonly collection: string;
  readonly filter: Record<string, unknown>;
  readonly sort: Asked["sort"];
  readonly group?: Group | undefined;
}

export function snippet(language: Language, wanted: Wanted): string {
  return { curl, JavaScript: javascript, Python: python, GraphQL: graphql }[language](wanted);
}

function curl({ url, collection, filter, sort, group }: Wanted): string {
  const body = JSON.stringify({ filter: encode(filter), group, sort, limit: 20 });
  return `curl ${url}/v1/collections/${collection}/query \\
  -H "Authorization: Bearer $RILLBASE_KEY" -H 'Content-Type: application/json' \\
  -d '${body.replaceAll("'", "'\\''")}'`;
}

function javascript({ url, collection, filter, sort, group }: Wanted): string {
  return `import { createClient } from "rillbase";

const db = createClient({ url: "${url}", key: process.env.RILLBASE_KEY });
const query = db.collection("${collection}")${filterCall(filter, json)}${groupCall(group, json)}${sortCalls(sort)}.limit(20);

query.onSnapshot(({ documents, state }) => {
  console.log(state, documents);
});`;
}

function python({ url, collection, filter, sort, group }: Wanted): string {
  return `import os
from rillbase import Client

with Client("${url}", key=os.environ["RILLBASE_KEY"]) as db:
    query = db.collection("${collection}")${filterCall(filter, literal)}${groupCall(group, literal)}${sortCalls(sort, ", descending=True")}.limit(20)
    for snapshot in query.watch():
        print(snapshot.state, snapshot.documents)`;
}

function graphql({ collection, filter, sort, group }: Wanted): string {
  const order = sort.length === 0 ? "" : `, sort: ${json(sort)}`;
  const documents = `documents(collection: "${collection}", filter: $filter${order}, first: 20) {
    totalCount
    nodes { key version document }
  }`;
  const groups =
    group &&
    `groups(
    collection: "${collection}", filter: $filter${order}, first: 20
    by: ${json(group.by)}, measures: ${members(group.measures)}
  ) {
    nodes { key document }
  }`;
  return `query Ask($filter: JSON) {
  ${groups ?? documents}
}

# variables
${JSON.stringify({ filter: encode(filter) })}`;
}

/** Returns measures as GraphQL writes objects: their names are names there, too. */
function members(measures: Group["measures"]): string {
  const named = Object.entries(measures).map(([name, measure]) => {
    const field = measure.op === "count" ? "" : `, field: ${json(measure.field)}`;
    return `${name}: {op: "${measure.op}"${field}}`;
  });
  return `{${named.join(", ")}}`;
}

function groupCall(group: Group | undefined, write: (value: unknown) => string): string {
  return group === undefined ? "" : `.group(${write(group.by)}, ${write(group.measures)})`;
}

function filterCall(filter: Record<string, unknown>, write: (value: unknown) => string): string {
  return Object.keys(filter).length === 0 ? "" : `.filter(${write(filter)})`;
}

function sortCalls(sort: Asked["sort"], descending = ', "desc"'): string {
  return sort
    .map(([field, direction]) => `.sort(${json(field)}${direction === 1 ? "" : descending})`)
    .join("");
}

function json(value: unknown): string {
  return JSON.stringify(encode(value));
}

/** Returns a value as Python writes it. */
function literal(value: unknown): string {
  const plain = encode(value);
  if (plain === null) return "None";
  if (typeof plain === "boolean") return plain ? "True" : "False";
  if (Array.isArray(plain)) return `[${plain.map(literal).join(", ")}]`;
  if (typeof plain === "object") {
    const members = Object.entries(plain).map(
      ([name, item]) => `${JSON.stringify(name)}: ${literal(item)}`,
    );
    return `{${members.join(", ")}}`;
  }
  return JSON.stringify(plain);
}
