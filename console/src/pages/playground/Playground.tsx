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
import { useAddressState } from "../../shell/useAddressState";
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
import { PRESENTATION_ADDRESS, QUERY_ADDRESS, type View } from "./playgroundAddress";
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
  const history = useHistory(`rillbase:playground:${slug}`);
  const [saved, setSaved] = useState(opened);
  const { typed, setTyped, playgroundQuery, query, error, run } = usePlaygroundQuery(
    collections,
    opened,
  );
  const presentation = usePresentation(chartOf(opened?.chart ?? null));
  const name = typed.collection || collections[0]?.name || "";
  const inputs = { ...typed, collection: name };
  const names = collections.map((candidate) => candidate.name);
  const { schema } = collections.find((candidate) => candidate.name === name) ?? {};
  const fields = Object.keys((schema?.properties as object | undefined) ?? {});
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
    chart: presentation.chart,
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
              // An address may name a collection that has been dropped.
              collections={name === "" || names.includes(name) ? names : [name, ...names]}
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
            {...presentation}
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

/**
 * The typed query, and the one that was run last, which is in the address. It is parsed when the
 * page opens and each time it is run.
 */
function usePlaygroundQuery(collections: readonly Collection[], opened: SavedQuery | null) {
  const { client } = useTenant();
  const [initial] = useState(() => (opened === null ? exampleOf(collections) : inputsOf(opened)));
  const [inAddress, setInAddress] = useAddressState(QUERY_ADDRESS);
  const [shown, setShown] = useState(inAddress);
  const [typed, setTyped] = useState(inAddress ?? initial);
  const [error, setError] = useState<unknown>(null);
  if (shown !== inAddress) {
    setShown(inAddress);
    setTyped(inAddress ?? initial);
    setError(null);
  }
  const valid = useMemo(() => {
    if (inAddress !== null) return read(inAddress);
    if (opened !== null) return playgroundQueryOf(opened);
    return initial.collection === "" ? null : read(initial);
  }, [inAddress, opened, initial]);
  const playgroundQuery = error === null ? valid : null;
  const query = useMemo(
    () => playgroundQuery && queryOf(client, playgroundQuery),
    [client, playgroundQuery],
  );

  /** Returns whether the query can be read. */
  function run(inputs: QueryInputs): boolean {
    try {
      read(inputs);
    } catch (thrown) {
      setError(new SyntaxError(`The query cannot be read: ${failureOf(thrown).title}`));
      return false;
    }
    setError(null);
    setInAddress({ ...inputs }, "push");
    return true;
  }
  return { typed, setTyped, playgroundQuery, query, error, run };
}

/** The view and the chart, which are in the address if they are not the saved ones. */
function usePresentation(savedChart: ChartChoice | null) {
  const [{ view, chart }, setPresentation] = useAddressState(PRESENTATION_ADDRESS);
  const [initial] = useState<View>(savedChart === null ? "result" : "chart");
  return {
    view: view ?? initial,
    chart: chart ?? savedChart,
    onView: (chosen: View) =>
      setPresentation({ view: chosen === initial ? null : chosen, chart }, "push"),
    onChart: (chosen: ChartChoice) => setPresentation({ view, chart: chosen }, "replace"),
  };
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
  readonly view: View;
  readonly chart: ChartChoice | null;
  readonly onView: (view: View) => void;
  readonly onChart: (chart: ChartChoice) => void;
  /** The actions for the query, beside the views. */
  readonly children: ReactNode;
}

function QueryResult(props: QueryResultProps) {
  const { playgroundQuery, query, error, view, chart, onView, onChart, children } = props;
  const { slug } = useTenant();
  const { data: collections } = useCollections();
  const hasNothing = collections?.length === 0;
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
        <Segments label="View" options={views} value={view} onChange={onView} />
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
          hasFilter={Object.keys(playgroundQuery.filter).length > 0}
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
