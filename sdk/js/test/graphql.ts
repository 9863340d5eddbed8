/**
 * A live query through `graphql-ws`, the client that Apollo and urql use as well: a program that
 * reports the rows that it holds, and how often it had to be given the whole answer.
 */

import { createClient, type FormattedExecutionResult } from "graphql-ws";

const WATCH = `
subscription Watch($collection: String!, $resume: String) {
  documents(collection: $collection, sort: [["n", 1]], limit: 100, resume: $resume) {
    kind part items { key document }
    match index oldIndex node { key document }
  }
}`;

interface Row {
  key: unknown;
  document: unknown;
}

interface Told {
  kind: "RESULT" | "READY" | "EVENT" | "RESET" | "STATUS";
  part: number | null;
  items: Row[] | null;
  match: "ADD" | "CHANGE" | "CHANGE_INDEX" | "REMOVE" | null;
  index: number | null;
  oldIndex: number | null;
  node: Row | null;
}

const [url = "", token = "", collection = ""] = process.argv.slice(2);
const RETRY_MS = 100;
let rows: Row[] = [];
let answers = 0;
let resume: string | null = null;

function apply(told: Told): void {
  if (told.kind === "RESULT") {
    if (told.part === 0) {
      rows = [];
      answers += 1;
    }
    rows.push(...(told.items ?? []));
  } else if (told.kind === "EVENT") {
    if (told.match !== "ADD" && told.oldIndex !== null) rows.splice(told.oldIndex, 1);
    if (told.match !== "REMOVE" && told.index !== null && told.node !== null) {
      rows.splice(told.index, 0, told.node);
    }
  }
}

function report(): void {
  const documents = rows.map((row) => row.document);
  process.stdout.write(`${JSON.stringify({ name: "rows", documents, answers })}\n`);
}

/** One connection's worth of the subscription; ends by throwing when the connection is lost. */
async function follow(): Promise<void> {
  const client = createClient({
    url,
    connectionParams: { token },
    retryAttempts: 0,
    lazyCloseTimeout: 0,
  });
  const watch = { query: WATCH, variables: { collection, resume } };
  for await (const result of client.iterate<{ documents: Told }, { resume?: string }>(watch)) {
    keep(result);
  }
}

type Result = FormattedExecutionResult<{ documents: Told }, { resume?: string }>;

function keep({ data, extensions, errors }: Result): void {
  if (errors) throw new Error(JSON.stringify(errors));
  if (data) apply(data.documents);
  resume = extensions?.resume ?? resume;
  report();
}

process.stdin.on("end", () => process.exit(0)).resume();
for (;;) {
  try {
    await follow();
  } catch (lost) {
    process.stdout.write(`${JSON.stringify({ name: "lost", reason: String(lost) })}\n`);
  }
  await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
}
