/** GraphQL by hand: an operation with its variables, what comes back, and what the schema offers. */

import { useMemo, useRef, useState } from "react";
import { useTenant } from "../../api/tenant";
import { PageHead } from "../../shell/Shell";
import { Empty } from "../../ui/Empty";
import { ErrorNotice } from "../../ui/ErrorNotice";
import { Segments } from "../../ui/Field";
import { Icon } from "../../ui/Icon";
import { JsonEditor } from "../../ui/JsonEditor";
import { Menu, MenuItem } from "../../ui/Menu";
import { clockText } from "../../ui/Time";
import { ask, type Told, useSchema, useSubscription } from "./ask";
import { Explorer, type Shown } from "./Explorer";
import { useHistory } from "./history";
import { operationSupport, variablesSupport } from "./language";
import { kindOf, namesOf, prettified } from "./operations";
import "./graphql.css";

const FIRST = `# Ctrl+Space completes, Ctrl+Enter runs, Ctrl+click shows a type.
query First {
  documents(collection: "todos", first: 3) {
    totalCount
    nodes { key version document }
  }
}
`;

type Part = "ask" | "answer" | "schema";

export default function GraphQL() {
  const { slug } = useTenant();
  const schema = useSchema(slug);
  const history = useHistory(slug);
  const subscription = useSubscription(slug);
  const [operation, setOperation] = useState(history.operations[0] ?? FIRST);
  const [variables, setVariables] = useState("{}");
  const [chosen, setChosen] = useState("");
  const [answer, setAnswer] = useState<string | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [trail, setTrail] = useState<readonly Shown[]>([]);
  // On a phone there is room for one of the three.
  const [part, setPart] = useState<Part>("ask");

  const names = useMemo(() => namesOf(operation), [operation]);
  const name = names.includes(chosen) ? chosen : (names[0] ?? "");
  const latest = useRef(operation);
  latest.current = operation;
  const support = useMemo(
    () => operationSupport(schema.data, (type, field) => setTrail([{ type, field }])),
    [schema.data],
  );
  const variableSupport = useMemo(() => variablesSupport(() => latest.current), []);

  async function run() {
    setError(null);
    setPart("answer");
    try {
      const asked = {
        query: operation,
        variables: JSON.parse(variables.trim() || "{}") as Record<string, unknown>,
        ...(name === "" ? {} : { operationName: name }),
      };
      history.add(operation);
      subscription.stop();
      if (kindOf(operation, name) === "subscription") {
        setAnswer(null);
        subscription.start(asked);
      } else {
        setAnswer(JSON.stringify(await ask(slug, asked), null, 2));
      }
    } catch (thrown) {
      setError(thrown);
    }
  }

  function take(text: string) {
    setOperation(text);
    setPart("ask");
  }
  return (
    <>
      <PageHead title="GraphQL">
        {history.operations.length > 0 && (
          <Menu label="Operations run before" button="History">
            {(close) => (
              <>
                {history.operations.map((each) => (
                  <MenuItem
                    key={each}
                    onSelect={() => {
                      take(each);
                      close();
                    }}
                  >
                    <span className="mono">{summaryOf(each)}</span>
                  </MenuItem>
                ))}
                <MenuItem danger onSelect={history.clear}>
                  Forget them
                </MenuItem>
              </>
            )}
          </Menu>
        )}
        <button
          type="button"
          className="button"
          onClick={() => setOperation(prettified(operation))}
        >
          Prettify
        </button>
        {names.length > 0 && (
          <select
            className="select small"
            aria-label="Operation to run"
            value={name}
            onChange={({ target }) => setChosen(target.value)}
          >
            {names.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        )}
        {subscription.isRunning ? (
          <button type="button" className="button main" onClick={subscription.stop}>
            <Icon name="close" size={12} /> Stop
          </button>
        ) : (
          <button type="button" className="button main" onClick={run}>
            <Icon name="play" size={13} /> Run
          </button>
        )}
      </PageHead>
      <div className="page-body fill">
        <div className="graphql" data-part={part}>
          <div className="graphql-parts">
            <Segments
              label="Part"
              options={[
                ["ask", "Operation"],
                ["answer", "Answer"],
                ["schema", "Schema"],
              ]}
              value={part}
              onChange={setPart}
            />
          </div>
          <Explorer
            schema={schema.data}
            error={schema.error}
            trail={trail}
            onWalk={setTrail}
            onChoose={take}
          />
          <div className="graphql-ask">
            <JsonEditor
              label="Operation"
              language="plain"
              support={support}
              value={operation}
              onChange={setOperation}
              onSubmit={run}
              height="100%"
            />
            <h2 className="soft">Variables</h2>
            <JsonEditor
              label="Variables"
              value={variables}
              onChange={setVariables}
              onSubmit={run}
              support={variableSupport}
              height="120px"
            />
          </div>
          <div className="graphql-answer" aria-live="polite">
            {error !== null && <ErrorNotice error={error} />}
            {answer !== null && <JsonEditor label="Answer" value={answer} height="100%" />}
            {answer === null && error === null && (
              <Answers told={subscription.told} isRunning={subscription.isRunning} />
            )}
          </div>
        </div>
      </div>
    </>
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

interface AnswersProps {
  readonly told: readonly Told[];
  readonly isRunning: boolean;
}

/** What a subscription has told, the latest first. */
function Answers({ told, isRunning }: AnswersProps) {
  if (told.length === 0) {
    return isRunning ? (
      <p className="soft none">Waiting for the first answer …</p>
    ) : (
      <Empty icon="play" title="Run an operation">
        Begin one with a field of the schema, or write your own: the editor completes what the
        schema offers. Subscriptions show each answer as it comes.
      </Empty>
    );
  }
  return (
    <ol className="told">
      {told.map(({ number, at, answer }) => (
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
