/** The playground: a query, its live result, its events and its plan. */

import { useEffect, useMemo, useState } from "react";
import type { Query } from "rillbase";
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
import {
  bodyOf,
  type Plain,
  type PlaygroundQuery,
  type QueryInputs,
  queryOf,
  read,
} from "./playgroundQuery";
import { QueryFields } from "./QueryFields";
import "./playground.css";

type View = "result" | "events" | "explain";

const NOTHING_TYPED = { filter: "{}", sort: "", limit: "20", by: "", measures: "", lookups: [] };

export default function Playground() {
  const { data: collections = [] } = useCollections();
  const [collection, setCollection] = useState("");
  const [typed, setTyped] = useState<Omit<QueryInputs, "collection">>(NOTHING_TYPED);
  const [showsCode, setShowsCode] = useState(false);
  const name = collection || collections[0]?.name || "";
  const { schema } = collections.find((candidate) => candidate.name === name) ?? {};
  const fields = Object.keys((schema?.properties as object | undefined) ?? {});
  const { playgroundQuery, query, error, run } = usePlaygroundQuery({ ...typed, collection: name });
  const change = (members: Partial<QueryInputs>) =>
    setTyped((before) => ({ ...before, ...members }));
  return (
    <>
      <PageHead title="Playground">
        <button
          type="button"
          className="button"
          disabled={playgroundQuery === null}
          onClick={() => setShowsCode(true)}
        >
          <Icon name="code" size={14} /> Code
        </button>
        <button type="button" className="button main" disabled={name === ""} onClick={run}>
          <Icon name="play" size={13} /> Run live
        </button>
      </PageHead>
      <div className="page-body fill">
        <div className="playground">
          <div className="asking">
            <QueryFields
              collections={collections.map((candidate) => candidate.name)}
              collection={name}
              fields={fields}
              typed={typed}
              onCollection={setCollection}
              onType={change}
            />
            <FilterEditor filter={typed.filter} onChange={change} onSubmit={run} />
          </div>
          <QueryResult playgroundQuery={playgroundQuery} query={query} error={error} />
        </div>
      </div>
      {showsCode && playgroundQuery !== null && (
        <CodeDialog {...playgroundQuery} onClose={() => setShowsCode(false)} />
      )}
    </>
  );
}

/** Reads the typed query when it is run. */
function usePlaygroundQuery(typed: QueryInputs) {
  const { client } = useTenant();
  const [playgroundQuery, setPlaygroundQuery] = useState<PlaygroundQuery | null>(null);
  const [error, setError] = useState<unknown>(null);
  const query = useMemo(
    () => playgroundQuery && queryOf(client, playgroundQuery),
    [client, playgroundQuery],
  );

  function run() {
    setError(null);
    try {
      setPlaygroundQuery(read(typed));
    } catch (thrown) {
      setPlaygroundQuery(null);
      setError(new SyntaxError(`The query cannot be read: ${failureOf(thrown).title}`));
    }
  }
  return { playgroundQuery, query, error, run };
}

interface FilterEditorProps {
  readonly filter: string;
  readonly onChange: (members: { readonly filter: string }) => void;
  readonly onSubmit: () => void;
}

function FilterEditor({ filter, onChange, onSubmit }: FilterEditorProps) {
  return (
    <>
      <JsonEditor
        label="Filter"
        value={filter}
        onChange={(text) => onChange({ filter: text })}
        onSubmit={onSubmit}
        height="100%"
      />
      <p className="soft hint">
        Write the filter in MongoDB's query language. <kbd>Ctrl</kbd> <kbd>↵</kbd> runs it. If you
        group by fields, each row is a group. Documents from a lookup appear below the documents
        that refer to them.
      </p>
    </>
  );
}

interface QueryResultProps {
  readonly playgroundQuery: PlaygroundQuery | null;
  readonly query: Query<Plain> | null;
  readonly error: unknown;
}

function QueryResult({ playgroundQuery, query, error }: QueryResultProps) {
  const { slug } = useTenant();
  const [view, setView] = useState<View>("result");
  const log = useEventLog(query);
  const views = [
    ["result", "Live result"],
    ["events", `Events${log.length > 0 ? ` ${log.length}` : ""}`],
    ["explain", "Explain"],
  ] as const;
  return (
    <div className="answer">
      <div className="answer-head">
        <Segments label="View" options={views} value={view} onChange={setView} />
      </div>
      {error !== null && (
        <div className="pad">
          <ErrorNotice error={error} />
        </div>
      )}
      {query === null && error === null && (
        <Empty icon="play" title="Run a live query">
          The result stays up to date: change a document in another window and watch it move here.
          The log shows each event that the server sends.
        </Empty>
      )}
      {query !== null && view === "result" && (
        <LiveResult query={query} group={playgroundQuery?.group} lookup={playgroundQuery?.lookup} />
      )}
      {query !== null && view === "events" && <EventLog log={log} />}
      {playgroundQuery !== null && view === "explain" && (
        <Explained
          key={JSON.stringify(playgroundQuery)}
          ask={() =>
            dataCall(
              slug,
              `/v1/collections/${playgroundQuery.collection}/explain`,
              bodyOf(playgroundQuery),
            )
          }
        />
      )}
    </div>
  );
}

const MAX_LOGGED = 200;

/** Logs the events that the server sends for a query. */
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
