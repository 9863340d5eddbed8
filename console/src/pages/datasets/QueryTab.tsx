/** A query over a table: its freshness, its result, and how much it read. */

import { useState } from "react";
import type { Stage, TableAnswer, TableQuery, TableRow } from "rillbase";
import { failureOf } from "../../api/failure";
import { useTenant } from "../../api/tenant";
import { Empty, Skeleton } from "../../ui/Empty";
import { ErrorNotice } from "../../ui/ErrorNotice";
import { Field, Select, sameText } from "../../ui/Field";
import { Icon } from "../../ui/Icon";
import { JsonEditor } from "../../ui/JsonEditor";
import { Table } from "../../ui/Listing";
import { textOf } from "../collections/documents/values";
import "../playground/playground.css";
import { examplesOf, type Members } from "./examples";
import { type Dataset, FRESHNESS, freshnessOf, STAGES } from "./types";

interface Answered {
  readonly answer: TableAnswer<TableRow>;
  readonly tookMs: number;
}

interface QueryTabProps {
  readonly dataset: Dataset;
}

export function QueryTab({ dataset }: QueryTabProps) {
  const [table, setTable] = useState(Object.keys(dataset.tables)[0] ?? "");
  const examples = examplesOf(dataset.tables[table]);
  const [text, setText] = useState(() => textOfMembers(examples[0]?.members ?? {}));
  const [freshness, setFreshness] = useState("0");
  const { ask, found, error, isAsking } = useAnswer(dataset.name);
  const run = () => ask(table, text, freshness);
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
          <Field label="Freshness">
            <Select options={FRESHNESS} value={freshness} onChange={setFreshness} />
          </Field>
        </div>
        <Examples examples={examples} onChoose={(members) => setText(textOfMembers(members))} />
        <JsonEditor label="Query" value={text} onChange={setText} onSubmit={run} height="100%" />
        <div className="section-head">
          <p className="soft hint">
            <kbd>Ctrl</kbd> <kbd>↵</kbd> runs the query.
          </p>
          <button type="button" className="button main" disabled={isAsking} onClick={run}>
            <Icon name="play" size={13} /> Run
          </button>
        </div>
      </div>
      <div className="answer">
        {error !== null && (
          <div className="pad">
            <ErrorNotice error={error} />
          </div>
        )}
        {found === null && error === null && (isAsking ? <Skeleton /> : <BeforeFirstRun />)}
        {found !== null && <Answer {...found} />}
      </div>
    </div>
  );
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

function BeforeFirstRun() {
  return (
    <Empty icon="layers" title="Choose how fresh the result must be">
      Merged rows are read fastest. A fresher result also reads rows that are not merged yet. Each
      result shows what was read.
    </Empty>
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
  async function ask(table: string, text: string, freshness: string) {
    setError(null);
    setAsking(true);
    const began = performance.now();
    try {
      const query = { ...queryOf(text), table, freshness: freshnessOf(freshness) };
      const answer = await client.dataset(name).query(query);
      setFound({ answer, tookMs: performance.now() - began });
    } catch (thrown) {
      setFound(null);
      setError(thrown);
    } finally {
      setAsking(false);
    }
  }
  return { ask, found, error, isAsking };
}

function queryOf(text: string): Omit<TableQuery, "table"> {
  let members: unknown;
  try {
    members = JSON.parse(text.trim() === "" ? "{}" : text);
  } catch (error) {
    throw new SyntaxError(`The query cannot be read: ${failureOf(error).title}`);
  }
  if (typeof members !== "object" || members === null || Array.isArray(members))
    throw new SyntaxError("A query must be an object.");
  return withSdkNames(members as Record<string, unknown>) as Omit<TableQuery, "table">;
}

const SDK_NAMES: Readonly<Record<string, string>> = { group_by: "groupBy", as_of: "asOf" };

/** The editor takes the API's names and the SDK's; the server refuses names that it does not know. */
function withSdkNames(members: Record<string, unknown>): Record<string, unknown> {
  const query: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(members)) {
    const member = SDK_NAMES[name] ?? name;
    if (member in query)
      throw new SyntaxError(`The query has ${name} and ${member}: specify only one.`);
    query[member] = value;
  }
  return query;
}

function Answer({ answer, tookMs }: Answered) {
  const { rows, state, freshnessS, read } = answer;
  const columns = Object.keys(rows[0] ?? {});
  return (
    <>
      <div className="answer-head dataset-told">
        <span className="badge accent number">state {state}</span>
        <span className="number">
          {rows.length.toLocaleString("en")} {rows.length === 1 ? "row" : "rows"} in{" "}
          {Math.round(tookMs)} ms
        </span>
        <span className="soft number">
          {freshnessS === 0 ? "nothing newer" : `newer uploads for ${freshnessS.toFixed(1)} s`}
        </span>
        <Read read={read} />
      </div>
      {rows.length === 0 ? (
        <Empty icon="search" title="No rows">
          No rows match the query.
        </Empty>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by keyboard.
        <div className="dataset-rows" tabIndex={0}>
          <Table heads={columns} numbers={columns.filter((name) => isNumber(rows[0]?.[name]))}>
            {rows.map((row, place) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: an answer's rows stay where they are.
              <tr key={place}>
                {columns.map((column) => (
                  <td key={column} className={isNumber(row[column]) ? "mono number" : "mono"}>
                    {row[column] === null ? (
                      <span className="soft">null</span>
                    ) : (
                      textOf(row[column])
                    )}
                  </td>
                ))}
              </tr>
            ))}
          </Table>
        </div>
      )}
    </>
  );
}

function isNumber(value: unknown): boolean {
  return typeof value === "number";
}

function Read({ read }: { readonly read: TableAnswer<TableRow>["read"] }) {
  const held = STAGES.filter(({ id }) => read[id].files > 0 || read[id].files_skipped > 0);
  return (
    <span className="badges">
      {held.map(({ id, title }) => (
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
  return `${rows} rows of ${files} files read, ${skipped} files left out`;
}
