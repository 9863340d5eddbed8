/** The playground: a query, its live result, its events and its plan. */

import { type ReactNode, useEffect, useMemo, useState } from "react";
import { type Query, stringify } from "rillbase";
import { Link } from "wouter";
import { failureOf } from "../../api/failure";
import { dataCall, useCollections, useTenant } from "../../api/tenant";
import type { Collection, SavedQuery } from "../../api/types";
import { ExportMenu } from "../../exports/ExportMenu";
import type { ResultQuery } from "../../exports/resultFile";
import { chartOf } from "../../saved/chart";
import { inputsOf, playgroundQueryOf, storedQuery } from "../../saved/collectionQuery";
import { HistoryMenu } from "../../saved/HistoryMenu";
import { SaveQuery } from "../../saved/SaveQuery";
import { useHistory } from "../../saved/useHistory";
import type { Draft } from "../../saved/useSavedQueries";
import { WithSaved } from "../../saved/WithSaved";
import { PageHead } from "../../shell/Shell";
import type { ChartChoice } from "../../ui/charts/chartData";
import { Empty, Skeleton } from "../../ui/Empty";
import { ErrorNotice } from "../../ui/ErrorNotice";
import { Segments } from "../../ui/Field";
import { Icon } from "../../ui/Icon";
import { JsonEditor } from "../../ui/JsonEditor";
import { CodeDialog } from "../collections/documents/CodeDialog";
import { ChartResult } from "./ChartResult";
import { EventLog, type Logged } from "./EventLog";
import { Explained } from "./Explained";
import { exampleOf, inputsFrom, summaryOf } from "./example";
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

type View = "result" | "chart" | "events" | "explain";

export default function Playground() {
  const { data: collections } = useCollections();
  if (collections === undefined) return <Skeleton />;
  return (
    <WithSaved>{(saved) => <PlaygroundPage collections={collections} opened={saved} />}</WithSaved>
  );
}

interface PlaygroundPageProps {
  readonly collections: readonly Collection[];
  /** The saved query that the address names. It, or else an example, is run at once. */
  readonly opened: SavedQuery | null;
}

function PlaygroundPage({ collections, opened }: PlaygroundPageProps) {
  const { slug } = useTenant();
  const [typed, setTyped] = useState(() =>
    opened === null ? exampleOf(collections) : inputsOf(opened),
  );
  const history = useHistory(`rillbase:playground:${slug}`);
  const [saved, setSaved] = useState(opened);
  const [chart, setChart] = useState(chartOf(opened?.chart ?? null));
  const name = typed.collection || collections[0]?.name || "";
  const inputs = { ...typed, collection: name };
  const { schema } = collections.find((candidate) => candidate.name === name) ?? {};
  const fields = Object.keys((schema?.properties as object | undefined) ?? {});
  const { playgroundQuery, query, error, run } = usePlaygroundQuery(inputs, opened);
  function runTyped() {
    if (run(inputs)) history.add(JSON.stringify(inputs));
  }
  function load(entry: string) {
    const earlier = inputsFrom(entry);
    setTyped(earlier);
    run(earlier);
  }
  const change = (members: Partial<QueryInputs>) =>
    setTyped((before) => ({ ...before, ...members }));
  const draft = (): Draft => ({
    kind: "collection",
    source: name,
    query: storedQuery(read(inputs)),
    chart,
  });
  return (
    <>
      <PageHead title="Playground">
        <CodeButton playgroundQuery={playgroundQuery} />
        <button type="button" className="button main" disabled={name === ""} onClick={runTyped}>
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
              onCollection={(collection) => change({ collection })}
              onType={change}
            >
              <HistoryMenu
                className="button small"
                label="Recent queries"
                entries={history.entries}
                summaryOf={summaryOf}
                onLoad={load}
                onClear={history.clear}
              />
            </QueryFields>
            <FilterEditor filter={typed.filter} onChange={change} onSubmit={runTyped} />
          </div>
          <QueryResult
            playgroundQuery={playgroundQuery}
            query={query}
            error={error}
            chart={chart}
            onChart={setChart}
          >
            <SaveQuery
              className="button small"
              draft={name === "" ? null : draft}
              saved={saved}
              onSaved={setSaved}
            />
          </QueryResult>
        </div>
      </div>
    </>
  );
}

function CodeButton({ playgroundQuery }: Pick<QueryResultProps, "playgroundQuery">) {
  const [showsCode, setShowsCode] = useState(false);
  return (
    <>
      <button
        type="button"
        className="button"
        disabled={playgroundQuery === null}
        onClick={() => setShowsCode(true)}
      >
        <Icon name="code" size={14} /> Code
      </button>
      {showsCode && playgroundQuery !== null && (
        <CodeDialog {...playgroundQuery} onClose={() => setShowsCode(false)} />
      )}
    </>
  );
}

/** Parses the typed query at the start and each time it is run. */
function usePlaygroundQuery(first: QueryInputs, opened: SavedQuery | null) {
  const { client } = useTenant();
  const [playgroundQuery, setPlaygroundQuery] = useState<PlaygroundQuery | null>(() => {
    if (opened !== null) return playgroundQueryOf(opened);
    return first.collection === "" ? null : read(first);
  });
  const [error, setError] = useState<unknown>(null);
  const query = useMemo(
    () => playgroundQuery && queryOf(client, playgroundQuery),
    [client, playgroundQuery],
  );

  /** Returns whether the query can be read. */
  function run(typed: QueryInputs): boolean {
    setError(null);
    try {
      setPlaygroundQuery(read(typed));
      return true;
    } catch (thrown) {
      setPlaygroundQuery(null);
      setError(new SyntaxError(`The query cannot be read: ${failureOf(thrown).title}`));
      return false;
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
      <span className="label" aria-hidden="true">
        Filter
      </span>
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
  readonly chart: ChartChoice | null;
  readonly onChart: (chart: ChartChoice) => void;
  /** The actions for the query, beside the views. */
  readonly children: ReactNode;
}

function QueryResult(props: QueryResultProps) {
  const { playgroundQuery, query, error, chart, onChart, children } = props;
  const { slug } = useTenant();
  const { data: collections } = useCollections();
  const hasNothing = collections?.length === 0;
  const [view, setView] = useState<View>(chart === null ? "result" : "chart");
  const log = useEventLog(query);
  const views = [
    ["result", "Live result"],
    ["chart", "Chart"],
    ["events", `Events${log.length > 0 ? ` ${log.length}` : ""}`],
    ["explain", "Explain"],
  ] as const;
  return (
    <div className="answer">
      <div className="answer-head">
        <Segments label="View" options={views} value={view} onChange={setView} />
        <span className="end">
          {playgroundQuery !== null && error === null && (
            <ExportMenu query={resultQuery(playgroundQuery)} />
          )}
          {children}
        </span>
      </div>
      {error !== null && (
        <div className="pad">
          <ErrorNotice error={error} />
        </div>
      )}
      {hasNothing && (
        <Empty icon="collection" title="No collections yet">
          A query reads a collection. Create one beside <strong>Collections</strong> in the
          navigation, or set up the example in <Link href={`/t/${slug}/start`}>Get started</Link>.
        </Empty>
      )}
      {query === null && error === null && !hasNothing && (
        <Empty icon="play" title="Run a live query">
          The result stays up to date: change a document in another window and watch it move here.
          The log shows each event that the server sends.
        </Empty>
      )}
      {query !== null && view === "result" && (
        <LiveResult query={query} group={playgroundQuery?.group} lookup={playgroundQuery?.lookup} />
      )}
      {query !== null && view === "chart" && (
        <ChartResult query={query} chart={chart} onChange={onChart} />
      )}
      {query !== null && view === "events" && <EventLog log={log} />}
      {playgroundQuery !== null && view === "explain" && (
        <Explained
          key={stringify(playgroundQuery)}
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

function resultQuery(playgroundQuery: PlaygroundQuery): ResultQuery {
  const { collection } = playgroundQuery;
  const path = `/v1/collections/${collection}/query`;
  return { path, body: bodyOf(playgroundQuery), name: collection };
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
