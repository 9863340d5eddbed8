/** A query as code to copy: for the API's protocols, and for the SDKs. */

import { encode, type Group, type Lookup } from "rillbase";
import type { GridQuery } from "./gridQuery";

export type Language = "curl" | "WebSocket" | "SSE" | "JavaScript" | "Python" | "GraphQL";

export const LANGUAGES: readonly Language[] = [
  "curl",
  "WebSocket",
  "SSE",
  "JavaScript",
  "Python",
  "GraphQL",
];

interface Wanted {
  readonly url: string;
  readonly collection: string;
  readonly filter: Record<string, unknown>;
  readonly sort: GridQuery["sort"];
  readonly group?: Group | undefined;
  readonly lookup?: readonly Lookup[] | undefined;
}

const LIMIT = 20;

export function snippet(language: Language, wanted: Wanted): string {
  return {
    curl,
    WebSocket: socket,
    SSE: sse,
    JavaScript: javascript,
    Python: python,
    GraphQL: graphql,
  }[language](wanted);
}

/** Returns the members of a query's body and message. */
function members({ filter, sort, group, lookup }: Wanted): Record<string, unknown> {
  return { filter: encode(filter), group, lookup, sort, limit: LIMIT };
}

/** Returns a text in quotes of the shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function curl(wanted: Wanted): string {
  return `curl ${wanted.url}/v1/collections/${wanted.collection}/query \\
  -H "Authorization: Bearer $RILLBASE_KEY" -H 'Content-Type: application/json' \\
  -d ${quoted(JSON.stringify(members(wanted)))}`;
}

function socket(wanted: Wanted): string {
  const subscribe = {
    type: "subscribe",
    id: "s1",
    collection: wanted.collection,
    ...members(wanted),
  };
  return `// ${wanted.url.replace("http", "ws")}/v1/realtime, subprotocol rillbase.v1
{"type":"hello","token":"rbk_…"}
${JSON.stringify(subscribe)}`;
}

function sse(wanted: Wanted): string {
  const parameters = Object.entries(members(wanted))
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `  --data-urlencode ${quoted(`${name}=${JSON.stringify(value)}`)}`);
  return `curl -N -G ${wanted.url}/v1/collections/${wanted.collection}/live \\
  -H "Authorization: Bearer $RILLBASE_KEY" \\
${parameters.join(" \\\n")}`;
}

function javascript(wanted: Wanted): string {
  return `import { createClient } from "rillbase";

const db = createClient({ url: "${wanted.url}", key: process.env.RILLBASE_KEY });
const query = db.collection("${wanted.collection}")${calls(wanted, json, ', "desc"')};

query.onSnapshot(({ documents, state }) => {
  console.log(state, documents);
});`;
}

function python(wanted: Wanted): string {
  return `import os
from rillbase import Client

with Client("${wanted.url}", key=os.environ["RILLBASE_KEY"]) as db:
    query = db.collection("${wanted.collection}")${calls(wanted, literal, ", descending=True")}
    for snapshot in query.watch():
        print(snapshot.state, snapshot.documents)`;
}

/** Returns the calls that make a query of a collection. */
function calls(
  { filter, sort, group, lookup = [] }: Wanted,
  write: (value: unknown) => string,
  descending: string,
): string {
  return [
    ...(Object.keys(filter).length === 0 ? [] : [`.filter(${write(filter)})`]),
    ...(group === undefined ? [] : [`.group(${write(group.by)}, ${write(group.measures)})`]),
    ...lookup.map(({ from, local, as }) => `.lookup(${json(from)}, ${json(local)}, ${json(as)})`),
    ...sort.map(([field, by]) => `.sort(${json(field)}${by === 1 ? "" : descending})`),
    `.limit(${LIMIT})`,
  ].join("");
}

function graphql({ collection, filter, sort, group, lookup }: Wanted): string {
  const order = sort.length === 0 ? "" : `, sort: ${json(sort)}`;
  const others = lookup === undefined ? "" : `\n    lookup: [${lookup.map(plain).join(", ")}]`;
  const documents = `documents(
    collection: "${collection}", filter: $filter${order}, first: ${LIMIT}${others}
  ) {
    totalCount
    nodes { key version document }
  }`;
  const groups =
    group &&
    `groups(
    collection: "${collection}", filter: $filter${order}, first: ${LIMIT}
    by: ${json(group.by)}, measures: ${plain(group.measures)}
  ) {
    nodes { key document }
  }`;
  return `query Ask($filter: JSON) {
  ${groups ?? documents}
}

# variables
${JSON.stringify({ filter: encode(filter) })}`;
}

/** Returns an object as GraphQL writes it: the names of its members are names there, too. */
function plain(value: object | string): string {
  if (typeof value === "string") return json(value);
  const named = Object.entries(value).map(([name, member]) => `${name}: ${plain(member)}`);
  return `{${named.join(", ")}}`;
}

function json(value: unknown): string {
  return JSON.stringify(encode(value));
}

/** Returns a value as Python writes it. */
function literal(value: unknown): string {
  const found = encode(value);
  if (found === null) return "None";
  if (typeof found === "boolean") return found ? "True" : "False";
  if (Array.isArray(found)) return `[${found.map(literal).join(", ")}]`;
  if (typeof found === "object") {
    const named = Object.entries(found).map(
      ([name, item]) => `${JSON.stringify(name)}: ${literal(item)}`,
    );
    return `{${named.join(", ")}}`;
  }
  return JSON.stringify(found);
}
