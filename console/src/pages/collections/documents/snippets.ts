/** A query as code that can be pasted: curl, JavaScript, Python, GraphQL. */

import { encode } from "rillbase";
import type { Asked } from "./asked";

export type Language = "curl" | "JavaScript" | "Python" | "GraphQL";

export const LANGUAGES: readonly Language[] = ["curl", "JavaScript", "Python", "GraphQL"];

interface Wanted {
  readonly url: string;
  readonly collection: string;
  readonly filter: Record<string, unknown>;
  readonly sort: Asked["sort"];
}

export function snippet(language: Language, wanted: Wanted): string {
  return { curl, JavaScript: javascript, Python: python, GraphQL: graphql }[language](wanted);
}

function curl({ url, collection, filter, sort }: Wanted): string {
  const body = JSON.stringify({ filter: encode(filter), sort, limit: 20 });
  return `curl ${url}/v1/collections/${collection}/query \\
  -H "Authorization: Bearer $RILLBASE_KEY" -H 'Content-Type: application/json' \\
  -d '${body.replaceAll("'", "'\\''")}'`;
}

function javascript({ url, collection, filter, sort }: Wanted): string {
  return `import { createClient } from "rillbase";

const db = createClient({ url: "${url}", key: process.env.RILLBASE_KEY });
const query = db.collection("${collection}")${filterCall(filter, json)}${sortCalls(sort)}.limit(20);

query.onSnapshot(({ documents, state }) => {
  console.log(state, documents);
});`;
}

function python({ url, collection, filter, sort }: Wanted): string {
  return `import os
from rillbase import Client

with Client("${url}", key=os.environ["RILLBASE_KEY"]) as db:
    query = db.collection("${collection}")${filterCall(filter, literal)}${sortCalls(sort)}.limit(20)
    for snapshot in query.watch():
        print(snapshot.state, snapshot.documents)`;
}

function graphql({ collection, filter, sort }: Wanted): string {
  const order = sort.length === 0 ? "" : `, sort: ${json(sort)}`;
  return `query Ask($filter: JSON) {
  documents(collection: "${collection}", filter: $filter${order}, first: 20) {
    totalCount
    nodes { key version document }
  }
}

# variables
${JSON.stringify({ filter: encode(filter) })}`;
}

function filterCall(filter: Record<string, unknown>, write: (value: unknown) => string): string {
  return Object.keys(filter).length === 0 ? "" : `.filter(${write(filter)})`;
}

function sortCalls(sort: Asked["sort"]): string {
  return sort
    .map(([field, direction]) => `.sort(${json(field)}${direction === 1 ? "" : ', "desc"'})`)
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
