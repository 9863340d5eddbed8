/** A query over a table: its freshness, its result, and how much it read. */

import { useEffect, useRef, useState } from "react";
import type { Stage, TableAnswer, TableRow } from "rillbase";
import { useTenant } from "../../api/tenant";
import type { SavedQuery } from "../../api/types";
import { ExportMenu } from "../../exports/ExportMenu";
import { chartOf } from "../../saved/chart";
import { readMembers, tableQueryOf, withApiNames } from "../../saved/datasetQuery";
import { SaveQuery } from "../../saved/SaveQuery";
import type { Draft } from "../../saved/useSavedQueries";
import { WithSaved } from "../../saved/WithSaved";
import { ChartBuilder } from "../../ui/charts/ChartBuilder";
import type { ChartChoice } from "../../ui/charts/chartData";
import { Empty, Skeleton } from "../../ui/Empty";
import { ErrorNotice } from "../../ui/ErrorNotice";
import { Field, Segments, Select, sameText } from "../../ui/Field";
import { Icon } from "../../ui/Icon";
import { JsonEditor } from "../../ui/JsonEditor";
import { Table } from "../../ui/Listing";
import { counted } from "../../ui/units";
import { textOf } from "../collections/documents/values";
import "../playground/playground.css";
import { examplesOf, type Members } from "./examples";
import { type Dataset, FRESHNESS, STAGES } from "./types";

interface Answered {
  readonly dataset: string;
  /** The query as the API takes it. */
  readonly query: Readonly<Record<string, unknown>>;
  readonly answer: TableAnswer<TableRow>;
  readonly tookMs: number;
}

interface QueryTabProps {
  readonly dataset: Dataset;
}

export function QueryTab({ dataset }: QueryTabProps) {
  return <WithSaved>{(saved) => <TableQueryTab dataset={dataset} opened={saved} />}</WithSaved>;
}

interface TableQueryTabProps extends QueryTabProps {
  /** The saved query that the address names. */
  readonly opened: SavedQuery | null;
}

function TableQueryTab({ dataset, opened }: TableQueryTabProps) {
  const begun = beginning(dataset, opened);
  const [table, setTable] = useState(begun.table);
  const examples = examplesOf(dataset.tables[table]);
  const [text, setText] = useState(begun.text);
  const [freshness, setFreshness] = useState(begun.freshness);
  const [chart, setChart] = useState(chartOf(opened?.chart ?? null));
  const [saved, setSaved] = useState(opened);
  const { ask, found, error, isAsking } = useAnswer(dataset.name);
  const members = () => ({ ...readMembers(text), table, freshness });
  const run = () => ask(members);
  useFirstRun(run);
  const draft = (): Draft => ({ kind: "dataset", source: dataset.name, query: members(), chart });
  function chooseTable(name: string) {
    setTable(name);
    setText(textOfMembers(examplesOf(dataset.tables[name])[0]?.members ?? {}));
  }
  return (
    <div className="playground">
      <div className="asking">
        <div className="row-fields dataset-fields">
          <Field label="Table">
            <Select
              className="mono"
              options={sameText(Object.keys(dataset.tables))}
              value={table}
              onChange={chooseTable}
            />
          </Field>
          <Field label="Freshness" hint="Queries of merged rows only are fastest.">
            <Select options={FRESHNESS} value={freshness} onChange={setFreshness} />
          </Field>
        </div>
        <Examples examples={examples} onChoose={(members) => setText(textOfMembers(members))} />
        <JsonEditor label="Query" value={text} onChange={setText} onSubmit={run} height="100%" />
        <div className="section-head">
          <p className="soft hint">
            <kbd>Ctrl</kbd> <kbd>↵</kbd> runs the query. The fresher the result must be, the more
            rows that are not merged yet are read.
          </p>
          <div className="badges">
            <SaveQuery draft={draft} saved={saved} onSaved={setSaved} />
            <button type="button" className="button main" disabled={isAsking} onClick={run}>
              <Icon name="play" size={13} /> Run
            </button>
          </div>
        </div>
      </div>
      <div className="answer">
        {error !== null && (
          <div className="pad">
            <ErrorNotice error={error} />
          </div>
        )}
        {found === null && error === null && <Skeleton />}
        {found !== null && <Answer {...found} chart={chart} onChart={setChart} />}
      </div>
    </div>
  );
}

interface Beginning {
  readonly table: string;
  readonly text: string;
  readonly freshness: string;
}

/** Returns what the tab begins with: the saved query, or the first example. */
function beginning(dataset: Dataset, opened: SavedQuery | null): Beginning {
  const first = Object.keys(dataset.tables)[0] ?? "";
  if (opened === null) {
    const members = examplesOf(dataset.tables[first])[0]?.members ?? {};
    return { table: first, text: textOfMembers(members), freshness: "0" };
  }
  const { table = first, freshness = "0", ...members } = opened.query;
  return { table: String(table), text: textOfMembers(members), freshness: String(freshness) };
}

/** Runs a query once when the page is opened. */
function useFirstRun(run: () => void) {
  const first = useRef<(() => void) | null>(run);
  useEffect(() => {
    first.current?.();
    first.current = null;
  }, []);
}

interface ExamplesProps {
  readonly examples: ReturnType<typeof examplesOf>;
  readonly onChoose: (members: Members) => void;
}

function Examples({ examples, onChoose }: ExamplesProps) {
  return (
    <fieldset className="badges" aria-label="Examples">
      {examples.map(({ title, members }) => (
        <button
          key={title}
          type="button"
          className="button small"
          onClick={() => onChoose(members)}
        >
          {title}
        </button>
      ))}
    </fieldset>
  );
}

function textOfMembers(members: Members): string {
  return JSON.stringify(members, null, 2);
}

/** Runs queries, and drops answers to all but the latest. */
function useAnswer(name: string) {
  const { client } = useTenant();
  const [found, setFound] = useState<Answered | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isAsking, setAsking] = useState(false);
  async function ask(members: () => Readonly<Record<string, unknown>>) {
    setError(null);
    setFound(null);
    setAsking(true);
    const began = performance.now();
    try {
      const query = tableQueryOf(members());
      const answer = await client.dataset(name).query(query);
      const tookMs = performance.now() - began;
      setFound({ dataset: name, query: withApiNames(query), answer, tookMs });
    } catch (thrown) {
      setError(thrown);
    } finally {
      setAsking(false);
    }
  }
  return { ask, found, error, isAsking };
}

interface AnswerProps extends Answered {
  readonly chart: ChartChoice | null;
  readonly onChart: (chart: ChartChoice) => void;
}

type View = "rows" | "chart";

const VIEWS: readonly (readonly [View, string])[] = [
  ["rows", "Rows"],
  ["chart", "Chart"],
];

function Answer({ dataset, query, answer, tookMs, chart, onChart }: AnswerProps) {
  const { rows, state, freshnessS, read } = answer;
  const [view, setView] = useState<View>(chart === null ? "rows" : "chart");
  return (
    <>
      <div className="answer-head dataset-told">
        <Segments label="View" options={VIEWS} value={view} onChange={setView} />
        <span className="badge accent number">state {state}</span>
        <span className="number">
          {counted(rows.length, "row")} in {Math.round(tookMs)} ms
        </span>
        <span className="soft number">
          {freshnessS === 0 ? "up to date" : `${freshnessS.toFixed(1)} s behind`}
        </span>
        <Read read={read} />
        <span className="dataset-export">
          <ExportMenu
            query={{
              path: `/v1/datasets/${dataset}/query`,
              body: query,
              name: `${dataset}-${query.table}`,
            }}
          />
        </span>
      </div>
      {rows.length === 0 ? (
        <Empty icon="search" title="No rows">
          No rows match the query.
        </Empty>
      ) : view === "chart" ? (
        <ChartBuilder chart={chart} rows={rows} textOf={textOf} onChange={onChart} />
      ) : (
        <RowTable rows={rows} />
      )}
    </>
  );
}

function RowTable({ rows }: { readonly rows: readonly TableRow[] }) {
  const columns = Object.keys(rows[0] ?? {});
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: scrolling elements need the keyboard.
    <div className="dataset-rows" tabIndex={0}>
      <Table heads={columns} numbers={columns.filter((name) => isNumber(rows[0]?.[name]))}>
        {rows.map((row, place) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: an answer's rows stay where they are.
          <tr key={place}>
            {columns.map((column) => (
              <td key={column} className={isNumber(row[column]) ? "mono number" : "mono"}>
                {row[column] === null ? <span className="soft">null</span> : textOf(row[column])}
              </td>
            ))}
          </tr>
        ))}
      </Table>
    </div>
  );
}

function isNumber(value: unknown): boolean {
  return typeof value === "number";
}

function Read({ read }: { readonly read: TableAnswer<TableRow>["read"] }) {
  const stages = STAGES.filter(({ id }) => read[id].files > 0 || read[id].files_skipped > 0);
  return (
    <span className="badges">
      {stages.map(({ id, title }) => (
        <span
          key={id}
          className="badge stage-badge number"
          data-stage={id}
          title={readText(read, id)}
        >
          <i className="swatch" aria-hidden="true" /> {read[id].rows.toLocaleString("en")}{" "}
          {title.toLowerCase()}
        </span>
      ))}
    </span>
  );
}

function readText(read: TableAnswer<TableRow>["read"], stage: Stage): string {
  const { files, files_skipped: skipped, rows } = read[stage];
  return `${counted(rows, "row")} of ${counted(files, "file")} read, ${counted(skipped, "file")} skipped`;
}
