/** *Why?*: asks why a client did or did not get a change, and shows the path of the change as a timeline. */

import { type FormEvent, useState } from "react";
import { useTenant } from "../../api/tenant";
import type { Subscription } from "../../api/types";
import { ErrorNotice } from "../../ui/ErrorNotice";
import { Field } from "../../ui/Field";
import { Icon, type IconName } from "../../ui/Icon";
import { clockText, momentText } from "../../ui/Time";
import { type Asked, type Reason, type Step, type StepState, type Told, useWhy } from "./useWhy";
import "./why.css";

export function Why({ row }: { readonly row: Subscription }) {
  const { may } = useTenant();
  const [typed, setTyped] = useState<Asked>({ document: "", version: "" });
  const [question, setQuestion] = useState<(Asked & { readonly at: number }) | null>(null);
  const why = useWhy(row.id, question);
  if (row.collection === undefined || !may("developer")) return null;

  function ask(question: Asked) {
    setTyped(question);
    setQuestion({ ...question, at: Date.now() });
  }

  return (
    <section className="why" aria-label="Trace a change to this client">
      <h2>Trace a change to this client</h2>
      <Question collection={row.collection} typed={typed} onType={setTyped} onAsk={ask} />
      <div aria-live="polite">
        {why.error !== null && <ErrorNotice error={why.error} onRetry={() => ask(typed)} />}
        {why.data !== undefined && (
          <Story
            explanation={why.data}
            onVersion={(version) => ask({ ...typed, version: `${version}` })}
          />
        )}
        {question === null && (
          <p className="soft">
            Shows each stage that a change passed on its way from the write to the client, and where
            it stopped. Recent changes are kept in memory, within a limit. Type an <code>_id</code>{" "}
            that is a number as a number; <code>"17"</code> in quotes is a string.
          </p>
        )}
      </div>
    </section>
  );
}

interface QuestionProps {
  readonly collection: string;
  readonly typed: Asked;
  readonly onType: (typed: Asked) => void;
  readonly onAsk: (typed: Asked) => void;
}

function Question({ collection, typed, onType, onAsk }: QuestionProps) {
  const isEmpty = typed.document.trim() === "";
  function submit(event: FormEvent) {
    event.preventDefault();
    if (!isEmpty) onAsk(typed);
  }
  return (
    <form onSubmit={submit}>
      <Field label={`_id of a document of ${collection}`}>
        <input
          className="input mono"
          value={typed.document}
          placeholder="the _id"
          onChange={(event) => onType({ ...typed, document: event.target.value })}
        />
      </Field>
      <Field label="Version">
        <input
          className="input mono"
          inputMode="numeric"
          pattern="[0-9]*"
          value={typed.version}
          placeholder="the newest"
          onChange={(event) => onType({ ...typed, version: event.target.value })}
        />
      </Field>
      <button type="submit" className="button primary" disabled={isEmpty}>
        Why?
      </button>
    </form>
  );
}

interface StoryProps {
  readonly explanation: Told;
  readonly onVersion: (version: number) => void;
}

function Story({ explanation, onVersion }: StoryProps) {
  const { version, newest_version: newest } = explanation;
  return (
    <div className="why-story">
      <header>
        <span className={`badge ${tone(explanation)}`}>{verdictText(explanation.verdict)}</span>
        <strong>{explanation.summary}</strong>
        {version !== null && (
          <span className="soft">
            version {version}
            {newest !== null && newest !== version && ` of ${newest}`}
          </span>
        )}
        <span className="why-versions">
          {version !== null && version > 1 && (
            <button
              type="button"
              className="button small plain"
              onClick={() => onVersion(version - 1)}
            >
              Version {version - 1}
            </button>
          )}
          {version !== null && newest !== null && version < newest && (
            <button
              type="button"
              className="button small plain"
              onClick={() => onVersion(version + 1)}
            >
              Version {version + 1}
            </button>
          )}
        </span>
      </header>
      <ol className="why-steps">
        {explanation.steps.map((step) => (
          <Stage key={step.stage} step={step} />
        ))}
      </ol>
    </div>
  );
}

const REACHED = new Set(["told", "coalesced", "result", "in_result"]);
/** The API's verdict for an event that has arrived is short for code, and unclear to people. */
function verdictText(verdict: string): string {
  return verdict === "told" ? "delivered" : verdict.replaceAll("_", " ");
}

function factName(name: string): string {
  return name === "told" ? "sent as" : name.replaceAll("_", " ");
}

const PENDING: ReadonlySet<StepState> = new Set(["waiting", "unknown"]);

function tone({ verdict, steps }: Told): string {
  if (REACHED.has(verdict)) return "good";
  const last = steps.at(-1);
  return last !== undefined && PENDING.has(last.state) ? "warn" : "bad";
}

const SIGNS: Record<StepState, readonly [IconName, string]> = {
  passed: ["check", "passed"],
  stopped: ["close", "stopped here"],
  waiting: ["more", "waiting here"],
  unknown: ["minus", "unknown"],
};

function Stage({ step }: { readonly step: Step }) {
  const [icon, words] = SIGNS[step.state];
  const { explanation, time_is_approximate: isApproximate = false, ...facts } = step.facts;
  return (
    <li className={step.state}>
      <span className="why-sign" title={words}>
        <Icon name={icon} size={11} />
      </span>
      <div>
        <h3>
          {step.title} <span className="hidden">({words})</span>
          {step.at !== null && (
            <time dateTime={step.at} title={momentText(step.at)}>
              {isApproximate && "about "}
              {clock(step.at)}
            </time>
          )}
        </h3>
        <p>
          <Marked text={step.detail} />
        </p>
        {explanation !== undefined && step.state !== "unknown" && (
          <Clauses reason={explanation.reason} />
        )}
        <Facts facts={facts} />
      </div>
    </li>
  );
}

/** The other facts about a stage, by their names in the API. */
function Facts({ facts }: { readonly facts: Readonly<Record<string, unknown>> }) {
  const known = Object.entries(facts).filter(([, value]) => value !== null && value !== undefined);
  if (known.length === 0) return null;
  return (
    <details className="why-facts">
      <summary>Details</summary>
      <dl>
        {known.map(([name, value]) => (
          <div key={name}>
            <dt>{factName(name)}</dt>
            <dd>
              <Fact value={value} />
            </dd>
          </div>
        ))}
      </dl>
    </details>
  );
}

/** Lists and objects become lists of what they hold, anything else its text. */
function Fact({ value }: { readonly value: unknown }) {
  if (typeof value !== "object" || value === null) return <code>{String(value)}</code>;
  const held = Object.entries(value);
  if (held.length === 0) return <span className="soft">none</span>;
  return (
    <ul>
      {held.map(([name, member]) => (
        <li key={name}>
          {!Array.isArray(value) && <span className="soft">{name.replaceAll("_", " ")} </span>}
          <Fact value={member} />
        </li>
      ))}
    </ul>
  );
}

/** The conditions of a filter, each with the document's value. */
function Clauses({ reason }: { readonly reason: Reason }) {
  if (reason.parts.length === 0) return null;
  return (
    <div className="why-clauses">
      <span className="soft">{reason.how === "all" ? "all of" : "one of"}</span>
      <ul>
        {reason.parts.map((part) => (
          <li key={part.clause} className={part.decides ? "decides" : undefined}>
            <span className={part.holds === true ? "holds" : "holds-not"}>
              <Icon name={part.holds === true ? "check" : "close"} size={10} />
              <span className="hidden">{part.holds === true ? "true" : "false"}</span>
            </span>
            <span>
              <code>{part.clause}</code>
              {part.how === "test" && part.found.length > 0 && (
                <span className="soft">
                  {" "}
                  found <code>{part.found.join(", ")}</code>
                  {part.more && " …"}
                </span>
              )}
              <Clauses reason={part} />
            </span>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** Text in which backquotes mark code. */
function Marked({ text }: { readonly text: string }) {
  const pieces = text.split("`").map((piece, place) => ({ piece, place }));
  return pieces.map(({ piece, place }) =>
    place % 2 === 1 ? <code key={place}>{piece}</code> : <span key={place}>{piece}</span>,
  );
}

function clock(at: string): string {
  const moment = new Date(at);
  const ms = `${moment.getMilliseconds()}`.padStart(3, "0");
  return `${clockText(moment)}.${ms}`;
}
