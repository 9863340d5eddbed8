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
import { type Asked, bodyOf, type Plain, queryOf, read, type Typed } from "./asked";
import { EventLog, type Logged } from "./EventLog";
import { Explained } from "./Explained";
import { LiveResult } from "./LiveResult";
import { QueryFields } from "./QueryFields";
import "./playground.css";

type View = "result" | "events" | "explain";

const NOTHING_TYPED = { filter: "{}", sort: "", limit: "20", by: "", measures: "", lookups: [] };

export default function Playground() {
  const { data: collections = [] } = useCollections();
  const [collection, setCollection] = useState("");
  const [typed, setTyped] = useState<Omit<Typed, "collection">>(NOTHING_TYPED);
  const [showsCode, setShowsCode] = useState(false);
  const name = collection || collections[0]?.name || "";
  const { schema } = collections.find((candidate) => candidate.name === name) ?? {};
  const fields = Object.keys((schema?.properties as object | undefined) ?? {});
  const { asked, query, error, run } = usePlaygroundQuery({ ...typed, collection: name });
  const change = (members: Partial<Typed>) => setTyped((before) => ({ ...before, ...members }));
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
          <QueryResult asked={asked} query={query} error={error} />
        </div>
      </div>
      {showsCode && asked !== null && <CodeDialog {...asked} onClose={() => setShowsCode(false)} />}
    </>
  );
}

/** Reads the typed query when it is run. */
function usePlaygroundQuery(typed: Typed) {
  const { client } = useTenant();
  const [asked, setAsked] = useState<Asked | null>(null);
  const [error, setError] = useState<unknown>(null);
  const query = useMemo(() => asked && queryOf(client, asked), [client, asked]);

  function run() {
    setError(null);
    try {
      setAsked(read(typed));
    } catch (thrown) {
      setAsked(null);
      setError(new SyntaxError(`The query cannot be read: ${failureOf(thrown).title}`));
    }
  }
  return { asked, query, error, run };
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
  readonly asked: Asked | null;
  readonly query: Query<Plain> | null;
  readonly error: unknown;
}

function QueryResult({ asked, query, error }: QueryResultProps) {
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
        <LiveResult query={query} group={asked?.group} lookup={asked?.lookup} />
      )}
      {query !== null && view === "events" && <EventLog log={log} />}
      {asked !== null && view === "explain" && (
        <Explained
          key={JSON.stringify(asked)}
          ask={() => dataCall(slug, `/v1/collections/${asked.collection}/explain`, bodyOf(asked))}
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
