/** The GraphQL page: an operation with its variables, its responses, and the schema. */

import { useState } from "react";
import { HistoryMenu } from "../../saved/HistoryMenu";
import { PageHead } from "../../shell/Shell";
import { Empty, Skeleton } from "../../ui/Empty";
import { ErrorNotice } from "../../ui/ErrorNotice";
import { Segments } from "../../ui/Field";
import { Icon } from "../../ui/Icon";
import { JsonEditor } from "../../ui/JsonEditor";
import { clockText } from "../../ui/Time";
import { Explorer } from "./Explorer";
import type { SubscriptionResponse } from "./transport";
import { type OperationEditor, useOperationEditor } from "./useOperationEditor";
import "./graphql.css";

type Part = "ask" | "answer" | "schema";

const PARTS: readonly (readonly [Part, string])[] = [
  ["ask", "Operation"],
  ["answer", "Response"],
  ["schema", "Schema"],
];

export default function GraphQL() {
  const editor = useOperationEditor();
  // On a phone there is room for one of the three.
  const [part, setPart] = useState<Part>("ask");
  const { schema, subscription, answer, error } = editor;

  function run() {
    setPart("answer");
    return editor.run();
  }

  function load(text: string) {
    editor.setOperation(text);
    setPart("ask");
  }
  return (
    <>
      <PageHead title="GraphQL">
        <HeadTools editor={editor} onRun={run} onLoad={load} />
      </PageHead>
      <div className="page-body fill">
        <div className="graphql" data-part={part}>
          <div className="graphql-parts">
            <Segments label="Part" options={PARTS} value={part} onChange={setPart} />
          </div>
          <Explorer
            schema={schema.data}
            error={schema.error}
            trail={editor.trail}
            onWalk={editor.setTrail}
            onChoose={load}
          />
          <OperationPane editor={editor} onRun={run} />
          <div className="graphql-answer" aria-live="polite">
            {error !== null && <ErrorNotice error={error} />}
            {answer !== null && <JsonEditor label="Response" value={answer} height="100%" />}
            {editor.isRunning && answer === null && error === null && <Skeleton />}
            {!editor.isRunning && answer === null && error === null && (
              <Responses responses={subscription.responses} isRunning={subscription.isRunning} />
            )}
          </div>
        </div>
      </div>
    </>
  );
}

interface HeadToolsProps {
  readonly editor: OperationEditor;
  readonly onRun: () => void;
  readonly onLoad: (operation: string) => void;
}

function HeadTools({ editor, onRun, onLoad }: HeadToolsProps) {
  const { history, names, subscription } = editor;
  return (
    <>
      <HistoryMenu
        label="Recent operations"
        entries={history.entries}
        summaryOf={summaryOf}
        onLoad={onLoad}
        onClear={history.clear}
      />
      <button type="button" className="button" onClick={editor.prettify}>
        Prettify
      </button>
      {names.length > 0 && (
        <select
          className="select small"
          aria-label="Operation to run"
          value={editor.name}
          onChange={({ target }) => editor.chooseName(target.value)}
        >
          {names.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      )}
      {subscription.isRunning ? (
        <button type="button" className="button main" onClick={subscription.stop}>
          <Icon name="close" size={12} /> Stop
        </button>
      ) : (
        <button type="button" className="button main" onClick={onRun}>
          <Icon name="play" size={13} /> Run
        </button>
      )}
    </>
  );
}

interface OperationPaneProps {
  readonly editor: OperationEditor;
  readonly onRun: () => void;
}

function OperationPane({ editor, onRun }: OperationPaneProps) {
  return (
    <div className="graphql-ask">
      <JsonEditor
        label="Operation"
        language="plain"
        support={editor.support}
        value={editor.operation}
        onChange={editor.setOperation}
        onSubmit={onRun}
        height="100%"
      />
      <h2 className="soft">
        Variables
        <span className="end">
          <kbd>Ctrl</kbd> <kbd>↵</kbd> runs the operation
        </span>
      </h2>
      <JsonEditor
        label="Variables"
        value={editor.variables}
        onChange={editor.setVariables}
        onSubmit={onRun}
        support={editor.variableSupport}
        height="120px"
      />
    </div>
  );
}

const MAX_SUMMARY = 60;

function summaryOf(operation: string): string {
  const text = operation
    .replace(/#[^\n]*/g, "")
    .replace(/\s+/g, " ")
    .trim();
  return text.length > MAX_SUMMARY ? `${text.slice(0, MAX_SUMMARY)}…` : text;
}

interface ResponsesProps {
  readonly responses: readonly SubscriptionResponse[];
  readonly isRunning: boolean;
}

/** The responses of a subscription, the latest first. */
function Responses({ responses, isRunning }: ResponsesProps) {
  if (responses.length === 0) {
    return isRunning ? (
      <p className="soft none">Waiting for the first response…</p>
    ) : (
      <Empty icon="play" title="Run an operation">
        Pick a field from the schema or write an operation. The editor completes names from the
        schema. A subscription shows each response as it arrives.
      </Empty>
    );
  }
  return (
    <ol className="told">
      {responses.map(({ number, at, answer }) => (
        <li key={number}>
          <header className="soft">
            <span className="number">{number}</span>
            <time dateTime={at.toISOString()}>{clockText(at)}</time>
          </header>
          <pre className="mono">{JSON.stringify(answer, null, 2)}</pre>
        </li>
      ))}
    </ol>
  );
}
