/** What became of a statement: its rows, as a grid or a chart, or its error. */

import { useState } from "react";
import { ServerError } from "rillbase";
import { ExportMenu } from "../../../exports/ExportMenu";
import { SQL_EXPORTS } from "../../../exports/resultFile";
import { ChartBuilder } from "../../../ui/charts/ChartBuilder";
import type { ChartChoice } from "../../../ui/charts/chartData";
import { Empty, Skeleton } from "../../../ui/Empty";
import { ErrorNotice } from "../../../ui/ErrorNotice";
import { Segments } from "../../../ui/Field";
import { counted } from "../../../ui/units";
import { textOf } from "../../collections/documents/values";
import { ResultGrid } from "./ResultGrid";
import { type StatementInputs, statementOf } from "./statement";
import type { Executed, Execution } from "./useStatement";

interface ResultProps {
  readonly dataset: string;
  readonly execution: Execution;
  readonly chart: ChartChoice | null;
  readonly onChart: (chart: ChartChoice) => void;
}

export function Result({ execution, ...shown }: ResultProps) {
  switch (execution.status) {
    case "none":
      return (
        <Empty icon="play" title="Run the statement">
          A statement reads all tables of the dataset at one state. The editor completes tables,
          columns and functions; <kbd>Ctrl</kbd> <kbd>↵</kbd> runs it.
        </Empty>
      );
    case "running":
      return (
        <>
          <span className="hidden" role="status">
            The statement is running.
          </span>
          <Skeleton />
        </>
      );
    case "cancelled":
      return (
        <Empty icon="close" title="Cancelled">
          The statement was cancelled after {Math.round(execution.tookMs).toLocaleString("en")} ms.
        </Empty>
      );
    case "failed":
      return (
        <div className="pad">
          <ErrorNotice error={errorOf(execution.error)} />
        </div>
      );
    case "done":
      return <Answer {...shown} {...execution} />;
  }
}

/** That an error is in the statement goes without saying. */
function errorOf(error: unknown): unknown {
  if (!(error instanceof ServerError) || error.code !== "invalid_sql") return error;
  const { code, message, status, requestId } = error;
  const problem = { code, detail: message };
  return new ServerError(
    requestId === undefined ? problem : { ...problem, request_id: requestId },
    status,
  );
}

type View = "rows" | "chart";

const VIEWS: readonly (readonly [View, string])[] = [
  ["rows", "Rows"],
  ["chart", "Chart"],
];

type AnswerProps = Executed & Omit<ResultProps, "execution">;

function Answer({ dataset, inputs, answer, tookMs, chart, onChart }: AnswerProps) {
  const { rows, columns, state, freshnessS, truncated, engine } = answer;
  const [view, setView] = useState<View>(chart === null ? "rows" : "chart");
  return (
    <>
      <div className="answer-head dataset-told">
        <Segments label="View" options={VIEWS} value={view} onChange={setView} />
        <span className="badge accent number">state {state}</span>
        <span className="number" role="status">
          {counted(rows.length, "row")} in {Math.round(tookMs).toLocaleString("en")} ms
        </span>
        {truncated && (
          <span className="badge warn" title="The result has more rows. An export has all of them.">
            limit reached
          </span>
        )}
        <span className="soft number">
          {freshnessS === 0 ? "up to date" : `${freshnessS.toFixed(1)} s behind`}
          {engine === "spark" && ", on Spark"}
        </span>
        <span className="dataset-export">
          <ExportMenu formats={SQL_EXPORTS} query={exportOf(dataset, inputs)} />
        </span>
      </div>
      {rows.length === 0 ? (
        <Empty icon="search" title="No rows">
          The result has {counted(columns.length, "column")} and no rows.
        </Empty>
      ) : view === "chart" ? (
        <ChartBuilder chart={chart} rows={rows} textOf={textOf} onChange={onChart} />
      ) : (
        <ResultGrid rows={rows} columns={columns} />
      )}
    </>
  );
}

/** An export has all rows, whatever the limit of those that are shown. */
function exportOf(dataset: string, inputs: StatementInputs) {
  const { limit: _, ...body } = statementOf(inputs);
  return { path: `/v1/datasets/${dataset}/sql`, body, name: dataset };
}
