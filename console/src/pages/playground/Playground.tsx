/** A query by hand: asked once or watched, explained, with a log of what the server tells. */

import { useEffect, useMemo, useState } from "react";
import { parse, type Query } from "rillbase";
import { failureOf } from "../../api/failure";
import { dataCall, useCollections, useTenant } from "../../api/tenant";
import { PageHead } from "../../shell/Shell";
import { Empty } from "../../ui/Empty";
import { ErrorNotice } from "../../ui/ErrorNotice";
import { Segments } from "../../ui/Field";
import { Icon } from "../../ui/Icon";
import { JsonEditor } from "../../ui/JsonEditor";
import { CodeDialog } from "../collections/documents/CodeDialog";
import { EventLog, type Logged } from "./EventLog";
import { Explained } from "./Explained";
import { LiveResult } from "./LiveResult";
import "./playground.css";

type Plain = Record<string, unknown>;
type View = "result" | "events" | "explain";

interface Asked {
  readonly collection: string;
  readonly filter: Plain;
  readonly sort: readonly (readonly [string, 1 | -1])[];
  readonly limit: number;
}

const MAX_LIMIT = 1_000;

export default function Playground() {
  const { client, slug } = useTenant();
  const { data: collections = [] } = useCollections();
  const [collection, setCollection] = useState("");
  const [filter, setFilter] = useState("{}");
  const [sort, setSort] = useState("");
  const [limit, setLimit] = useState("20");
  const [view, setView] = useState<View>("result");
  const [asked, setAsked] = useState<Asked | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [showsCode, setShowsCode] = useState(false);
  const name = collection || collections[0]?.name || "";

  function run() {
    setError(null);
    try {
      setAsked(read(name, filter, sort, limit));
    } catch (thrown) {
      setAsked(null);
      setError(new SyntaxError(`The filter cannot be read: ${failureOf(thrown).title}`));
    }
  }
  const query = useMemo(() => asked && queryOf(client, asked), [client, asked]);
  const log = useEventLog(query);
  return (
    <>
      <PageHead title="Playground">
        <button
          type="button"
          className="button"
          disabled={asked === null}
          onClick={() => setShowsCode(true)}
        >
          <Icon name="code" size={14} /> Code
        </button>
        <button type="button" className="button main" disabled={name === ""} onClick={run}>
          <Icon name="play" size={13} /> Run and watch
        </button>
      </PageHead>
      <div className="page-body fill">
        <div className="playground">
          <div className="asking">
            <div className="row-fields">
              <select
                className="select"
                aria-label="Collection"
                value={name}
                onChange={(event) => setCollection(event.target.value)}
              >
                {collections.map((found) => (
                  <option key={found.name}>{found.name}</option>
                ))}
              </select>
              <input
                className="input mono"
                aria-label="Sort"
                placeholder="sort: -rank, title"
                value={sort}
                onChange={(event) => setSort(event.target.value)}
              />
              <input
                className="input number"
                aria-label="Limit"
                type="number"
                min={1}
                max={MAX_LIMIT}
                value={limit}
                onChange={(event) => setLimit(event.target.value)}
              />
            </div>
            <JsonEditor
              label="Filter"
              value={filter}
              onChange={setFilter}
              onSubmit={run}
              height="100%"
            />
            <p className="soft hint">
              A filter in MongoDB's language. <kbd>Ctrl</kbd> <kbd>↵</kbd> runs it.
            </p>
          </div>
          <div className="answer">
            <div className="answer-head">
              <Segments
                label="View"
                options={[
                  ["result", "Live result"],
                  ["events", `Events${log.length > 0 ? ` ${log.length}` : ""}`],
                  ["explain", "Explain"],
                ]}
                value={view}
                onChange={setView}
              />
            </div>
            {error !== null && (
              <div className="pad">
                <ErrorNotice error={error} />
              </div>
            )}
            {query === null && error === null && (
              <Empty icon="play" title="Run a query and keep it">
                The answer stays up to date: change a document in another window and watch it move
                here. The log shows each event as the server tells it.
              </Empty>
            )}
            {query !== null && view === "result" && <LiveResult query={query} />}
            {query !== null && view === "events" && <EventLog log={log} />}
            {asked !== null && view === "explain" && (
              <Explained
                key={JSON.stringify(asked)}
                ask={() =>
                  dataCall(slug, `/v1/collections/${asked.collection}/explain`, bodyOf(asked))
                }
              />
            )}
          </div>
        </div>
      </div>
      {showsCode && asked !== null && (
        <CodeDialog
          collection={asked.collection}
          filter={asked.filter}
          sort={asked.sort}
          onClose={() => setShowsCode(false)}
        />
      )}
    </>
  );
}

function read(collection: string, filter: string, sort: string, limit: string): Asked {
  const parsed = parse(filter.trim() === "" ? "{}" : filter);
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed))
    throw new SyntaxError("A filter is an object.");
  const parts = sort
    .split(",")
    .map((part) => part.trim())
    .filter(Boolean);
  return {
    collection,
    filter: parsed as Plain,
    sort: parts.map((part) => (part.startsWith("-") ? [part.slice(1), -1] : [part, 1])),
    limit: Math.min(MAX_LIMIT, Math.max(1, Number(limit) || 20)),
  };
}

function queryOf(client: ReturnType<typeof useTenant>["client"], asked: Asked): Query<Plain> {
  let query: Query<Plain> = client.collection<Plain>(asked.collection);
  if (Object.keys(asked.filter).length > 0) query = query.filter(asked.filter);
  for (const [field, direction] of asked.sort) query = query.sort(field, direction);
  return query.limit(asked.limit);
}

function bodyOf({ filter, sort, limit }: Asked): object {
  return { filter, sort, limit };
}

const MAX_LOGGED = 200;

/** Logs what the server tells of the query while it is watched. */
function useEventLog(query: Query<Plain> | null): readonly Logged[] {
  const [log, setLog] = useState<readonly Logged[]>([]);
  useEffect(() => {
    setLog([]);
    if (query === null) return;
    const stop = new AbortController();
    let number = 0;
    const add = (event: Logged["event"]) => {
      number += 1;
      const logged = { number, at: new Date(), event };
      setLog((held) => [logged, ...held].slice(0, MAX_LOGGED));
    };
    const follow = async () => {
      for await (const event of query.changes({ signal: stop.signal })) add(event);
    };
    follow().catch((error: unknown) => add({ type: "end", reason: failureOf(error).summary }));
    return () => stop.abort();
  }, [query]);
  return log;
}
