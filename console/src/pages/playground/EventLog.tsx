/** The events of a query, newest first. */

import { printTyped, type QueryEvent } from "rillbase";
import { clockText } from "../../ui/Time";
import { counted } from "../../ui/units";
import { idText } from "../collections/documents/values";

export interface Logged {
  readonly number: number;
  readonly at: Date;
  readonly event:
    | QueryEvent<Record<string, unknown>>
    | { readonly type: "end"; readonly reason: string };
}

const TONES: Readonly<Record<string, string>> = {
  result: "accent",
  add: "good",
  change: "accent",
  move: "warn",
  remove: "bad",
  end: "bad",
};

export function EventLog({ log }: { readonly log: readonly Logged[] }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: scrolling elements need the keyboard.
    <ol className="event-log" tabIndex={0} aria-label="Events">
      {log.map(({ number, at, event }) => (
        <li key={number}>
          <time className="number soft">{clockText(at)}</time>
          <span className={`badge ${TONES[event.type] ?? ""}`}>{event.type}</span>
          <span className="mono cut">{textOf(event)}</span>
        </li>
      ))}
    </ol>
  );
}

function textOf(event: Logged["event"]): string {
  switch (event.type) {
    case "result":
      return counted(event.documents.length, "document");
    case "remove":
      return `${idText(event.id)}${event.reason === null ? "" : ` (${event.reason})`}`;
    case "end":
      return event.reason;
    default:
      return `${idText(event.id)} v${event.version} ${printTyped(event.document)}`;
  }
}
