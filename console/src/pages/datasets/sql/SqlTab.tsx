/** SQL over a dataset: the editor of a statement, and its result. */

import { useEffect, useMemo, useRef, useState } from "react";
import { useTenant } from "../../../api/tenant";
import type { SavedQuery } from "../../../api/types";
import { chartOf } from "../../../saved/chart";
import { HistoryMenu } from "../../../saved/HistoryMenu";
import { SaveQuery } from "../../../saved/SaveQuery";
import { useHistory } from "../../../saved/useHistory";
import type { Draft } from "../../../saved/useSavedQueries";
import { WithSaved } from "../../../saved/WithSaved";
import { useAddressState } from "../../../shell/useAddressState";
import { Field, Select } from "../../../ui/Field";
import { Icon } from "../../../ui/Icon";
import { JsonEditor } from "../../../ui/JsonEditor";
import { type Dataset, FRESHNESS } from "../types";
import { sqlSupport } from "./language";
import { Parameters } from "./Parameters";
import { Result } from "./Result";
import {
  DEFAULTS,
  ENGINES,
  inputsFrom,
  inputsOf,
  LIMITS,
  lineErrorsOf,
  MAX_TIMEOUT_S,
  parameterNames,
  STATEMENT_ADDRESS,
  type StatementInputs,
  statementOf,
  summaryOf,
} from "./statement";
import { exampleOf, sqlTables } from "./tables";
import { type Execution, useStatement } from "./useStatement";
import "../../playground/playground.css";
import "./sql.css";

interface SqlTabProps {
  readonly dataset: Dataset;
}

export default function SqlTab({ dataset }: SqlTabProps) {
  return <WithSaved>{(saved) => <StatementTab dataset={dataset} opened={saved} />}</WithSaved>;
}

interface StatementTabProps extends SqlTabProps {
  /** The saved query that the address names. It is executed at once, unless the address also has a changed one. */
  readonly opened: SavedQuery | null;
}

function StatementTab({ dataset, opened }: StatementTabProps) {
  const { slug } = useTenant();
  const history = useHistory(`rillbase:sql:${slug}:${dataset.name}`);
  const [initial] = useState(() => beginning(dataset, opened));
  const [typed, setTyped] = useAddressState(STATEMENT_ADDRESS);
  const inputs = typed ?? initial;
  const [chart, setChart] = useState(chartOf(opened?.chart ?? null));
  const [saved, setSaved] = useState(opened);
  const { execution, run: execute, cancel } = useStatement(dataset.name);
  const change = (members: Partial<StatementInputs>) =>
    setTyped({ ...inputs, ...members }, "replace");
  const load = (entry: string) => setTyped(inputsFrom(entry), "push");
  function run() {
    if (inputs.sql.trim() === "") return;
    history.add(JSON.stringify(inputs));
    void execute(inputs);
  }
  // What was typed into it since may be unfinished.
  useFirstRun(opened !== null && typed === null ? run : null);
  const draft = (): Draft => ({
    kind: "dataset",
    source: dataset.name,
    query: { ...statementOf(inputs) },
    chart,
  });
  return (
    <div className="sql">
      <div className="sql-statement">
        <div className="sql-bar">
          <Options inputs={inputs} onChange={change} />
          <div className="sql-actions">
            <HistoryMenu
              label="Recent statements"
              entries={history.entries}
              summaryOf={summaryOf}
              onLoad={load}
              onClear={history.clear}
            />
            <SaveQuery draft={draft} saved={saved} onSaved={setSaved} />
            <RunButton execution={execution} onRun={run} onCancel={cancel} />
          </div>
        </div>
        <StatementEditor
          dataset={dataset}
          sql={inputs.sql}
          execution={execution}
          onChange={(sql) => change({ sql })}
          onSubmit={run}
        />
        <Parameters
          names={parameterNames(inputs.sql)}
          values={inputs.parameters}
          onChange={(parameters) => change({ parameters })}
          onSubmit={run}
        />
      </div>
      <div className="answer">
        <Result dataset={dataset.name} execution={execution} chart={chart} onChart={setChart} />
      </div>
    </div>
  );
}

/** Returns what the tab begins with: the saved statement, or an example. */
function beginning(dataset: Dataset, opened: SavedQuery | null): StatementInputs {
  return opened === null ? { ...DEFAULTS, sql: exampleOf(dataset) } : inputsOf(opened.query);
}

function useFirstRun(run: (() => void) | null) {
  const first = useRef(run);
  useEffect(() => {
    first.current?.();
    first.current = null;
  }, []);
}

interface OptionsProps {
  readonly inputs: StatementInputs;
  readonly onChange: (members: Partial<StatementInputs>) => void;
}

function Options({ inputs, onChange }: OptionsProps) {
  return (
    <div className="sql-options">
      <Field label="Freshness">
        <Select
          options={FRESHNESS}
          value={inputs.freshness}
          onChange={(freshness) => onChange({ freshness })}
        />
      </Field>
      <Field label="Rows, at most">
        <Select
          options={LIMITS.map((limit) => [limit, Number(limit).toLocaleString("en")])}
          value={inputs.limit}
          onChange={(limit) => onChange({ limit })}
        />
      </Field>
      <Field label="Timeout, s">
        <input
          className="input number"
          type="number"
          min={1}
          max={MAX_TIMEOUT_S}
          value={inputs.timeout}
          onChange={(event) => onChange({ timeout: event.target.value })}
        />
      </Field>
      <Field label="Engine">
        <Select
          options={ENGINES}
          value={inputs.engine}
          onChange={(engine) => onChange({ engine })}
        />
      </Field>
    </div>
  );
}

interface RunButtonProps {
  readonly execution: Execution;
  readonly onRun: () => void;
  readonly onCancel: () => void;
}

function RunButton({ execution, onRun, onCancel }: RunButtonProps) {
  if (execution.status === "running") {
    return (
      <button type="button" className="button" onClick={onCancel}>
        <Icon name="close" size={12} /> Cancel
      </button>
    );
  }
  return (
    <button type="button" className="button main" title="Ctrl + Enter" onClick={onRun}>
      <Icon name="play" size={13} /> Run
    </button>
  );
}

interface StatementEditorProps {
  readonly dataset: Dataset;
  readonly sql: string;
  readonly execution: Execution;
  readonly onChange: (sql: string) => void;
  readonly onSubmit: () => void;
}

function StatementEditor({ dataset, sql, execution, onChange, onSubmit }: StatementEditorProps) {
  const support = useMemo(() => sqlSupport(sqlTables(dataset)), [dataset]);
  // Once the text has changed, an error no longer says where it is.
  const error = execution.status === "failed" && execution.sql === sql ? execution.error : null;
  const lineErrors = useMemo(() => (error === null ? [] : lineErrorsOf(error)), [error]);
  return (
    <JsonEditor
      label="SQL statement"
      language="plain"
      support={support}
      lineErrors={lineErrors}
      value={sql}
      onChange={onChange}
      onSubmit={onSubmit}
      height="100%"
    />
  );
}
