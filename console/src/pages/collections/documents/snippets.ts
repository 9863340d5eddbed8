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

interface SnippetQuery {
  readonly url: string;
  readonly collection: string;
  readonly filter: Record<string, unknown>;
  readonly sort: GridQuery["sort"];
  readonly group?: Group | undefined;
  readonly lookup?: readonly Lookup[] | undefined;
}

const LIMIT = 20;

export function snippet(language: Language, query: SnippetQuery): string {
  return {
    curl,
    WebSocket: socket,
    SSE: sse,
    JavaScript: javascript,
    Python: python,
    GraphQL: graphql,
  }[language](query);
}

/** Returns the members of a query's body and message. */
function members({ filter, sort, group, lookup }: SnippetQuery): Record<string, unknown> {
  return { filter: encode(filter), group, lookup, sort, limit: LIMIT };
}

/** Returns a text quoted for the shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function curl(query: SnippetQuery): string {
  return `curl ${query.url}/v1/collections/${query.collection}/query \\
  -H "Authorization: Bearer $RILLBASE_KEY" -H 'Content-Type: application/json' \\
  -d ${quoted(JSON.stringify(members(query)))}`;
}

function socket(query: SnippetQuery): string {
  const subscribe = {
    type: "subscribe",
    id: "s1",
    collection: query.collection,
    ...members(query),
  };
  return `// ${query.url.replace("http", "ws")}/v1/realtime, subprotocol rillbase.v1
{"type":"hello","token":"rbk_…"}
${JSON.stringify(subscribe)}`;
}

function sse(query: SnippetQuery): string {
  const parameters = Object.entries(members(query))
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `  --data-urlencode ${quoted(`${name}=${JSON.stringify(value)}`)}`);
  return `curl -N -G ${query.url}/v1/collections/${query.collection}/live \\
  -H "Authorization: Bearer $RILLBASE_KEY" \\
${parameters.join(" \\\n")}`;
}

function javascript(query: SnippetQuery): string {
  return `import { createClient } from "rillbase";

const db = createClient({ url: "${query.url}", key: process.env.RILLBASE_KEY });
const query = db.collection("${query.collection}")${calls(query, json, ', "desc"')};

query.onSnapshot(({ documents, state }) => {
  console.log(state, documents);
});`;
}

function python(query: SnippetQuery): string {
  return `import os
from rillbase import Client

with Client("${query.url}", key=os.environ["RILLBASE_KEY"]) as db:
    query = db.collection("${query.collection}")${calls(query, literal, ", descending=True")}
    for snapshot in query.watch():
        print(snapshot.state, snapshot.documents)`;
}

/** Returns the calls that make a query of a collection. */
function calls(
  { filter, sort, group, lookup = [] }: SnippetQuery,
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

function graphql({ collection, filter, sort, group, lookup }: SnippetQuery): string {
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

/** Returns an object in GraphQL's syntax, with unquoted member names. */
function plain(value: object | string): string {
  if (typeof value === "string") return json(value);
  const named = Object.entries(value).map(([name, member]) => `${name}: ${plain(member)}`);
  return `{${named.join(", ")}}`;
}

function json(value: unknown): string {
  return JSON.stringify(encode(value));
}

/** Returns a value in Python's syntax. */
function literal(value: unknown): string {
  const encoded = encode(value);
  if (encoded === null) return "None";
  if (typeof encoded === "boolean") return encoded ? "True" : "False";
  if (Array.isArray(encoded)) return `[${encoded.map(literal).join(", ")}]`;
  if (typeof encoded === "object") {
    const named = Object.entries(encoded).map(
      ([name, item]) => `${JSON.stringify(name)}: ${literal(item)}`,
    );
    return `{${named.join(", ")}}`;
  }
  return JSON.stringify(encoded);
}
