/** A query by hand: asked once or watched, explained, with a log of what the server tells. */

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
  const { client, slug } = useTenant();
  const { data: collections = [] } = useCollections();
  const [collection, setCollection] = useState("");
  const [typed, setTyped] = useState<Omit<Typed, "collection">>(NOTHING_TYPED);
  const [view, setView] = useState<View>("result");
  const [asked, setAsked] = useState<Asked | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [showsCode, setShowsCode] = useState(false);
  const name = collection || collections[0]?.name || "";
  const { schema } = collections.find((found) => found.name === name) ?? {};
  const fields = Object.keys((schema?.properties as object | undefined) ?? {});

  function run() {
    setError(null);
    try {
      setAsked(read({ ...typed, collection: name }));
    } catch (thrown) {
      setAsked(null);
      setError(new SyntaxError(`The query cannot be read: ${failureOf(thrown).title}`));
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
            <QueryFields
              collections={collections.map((found) => found.name)}
              collection={name}
              fields={fields}
              typed={typed}
              onCollection={setCollection}
              onType={(members) => setTyped((held) => ({ ...held, ...members }))}
            />
            <JsonEditor
              label="Filter"
              value={typed.filter}
              onChange={(filter) => setTyped((held) => ({ ...held, filter }))}
              onSubmit={run}
              height="100%"
            />
            <p className="soft hint">
              A filter in MongoDB's language. <kbd>Ctrl</kbd> <kbd>↵</kbd> runs it. Group by fields,
              and the rows of the answer are groups. Look others up, and they are shown below the
              documents that refer to them.
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
            {query !== null && view === "result" && (
              <LiveResult query={query} group={asked?.group} lookup={asked?.lookup} />
            )}
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
          group={asked.group}
          lookup={asked.lookup}
          onClose={() => setShowsCode(false)}
        />
      )}
    </>
  );
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
