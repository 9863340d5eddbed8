/** The entries of the request log. */

import { Fragment } from "react";
import type { RequestEntry } from "../../api/types";
import { Table } from "../../ui/Listing";
import { ago, clockText, momentText } from "../../ui/Time";
import { size } from "../../ui/units";
import { type CallerNames, useCallerNames } from "./callers";
import { callerText, durationText, kindText, toneOf } from "./requestTexts";

const HEADS = ["Time", "Request", "Status", "Duration", "In", "Out", "Caller"];
const NUMBERS = ["Duration", "In", "Out"];

interface RequestTableProps {
  readonly entries: readonly RequestEntry[];
  readonly openedId: string | null;
  readonly onOpen: (entry: RequestEntry) => void;
}

export function RequestTable({ entries, openedId, onOpen }: RequestTableProps) {
  const callers = useCallerNames();
  return (
    <Table heads={HEADS} numbers={NUMBERS}>
      {entries.map((entry) => (
        <Row
          key={entry.id}
          entry={entry}
          callers={callers}
          isOpen={entry.id === openedId}
          onOpen={() => onOpen(entry)}
        />
      ))}
    </Table>
  );
}

interface RowProps {
  readonly entry: RequestEntry;
  readonly callers: CallerNames;
  readonly isOpen: boolean;
  readonly onOpen: () => void;
}

function Row({ entry, callers, isOpen, onOpen }: RowProps) {
  return (
    <tr className={isOpen ? "request open" : "request"} onClick={onOpen}>
      <td className="when">
        <time dateTime={entry.at} title={momentText(entry.at)}>
          {clockText(new Date(entry.at))}
        </time>{" "}
        <span className="soft">{ago(new Date(entry.at))}</span>
      </td>
      <td className="what">
        <button
          type="button"
          className="route mono"
          data-entry={entry.id}
          aria-pressed={isOpen}
          title={entry.route}
        >
          <strong>{entry.method}</strong> <Route route={entry.route} />
        </button>
        {(entry.kind === "opened" || entry.kind === "closed") && (
          <span className="badge" title={kindText(entry)}>
            {entry.kind}
          </span>
        )}
      </td>
      <td className="status">
        <span className={`badge ${toneOf(entry.status)}`}>{entry.status}</span>
        {entry.code !== null && <span className="mono code-name">{entry.code}</span>}
      </td>
      <td className="number">{durationText(entry.duration_ms)}</td>
      <td className="number soft">{entry.bytes_in === 0 ? "–" : size(entry.bytes_in)}</td>
      <td className="number soft">{entry.bytes_out === 0 ? "–" : size(entry.bytes_out)}</td>
      <td className="soft caller" title={entry.actor}>
        {callerText(entry.actor, callers)}
      </td>
    </tr>
  );
}

/** A path that breaks after its slashes. */
function Route({ route }: { readonly route: string }) {
  return route.split(/(?<=.\/)/).map((part, place) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: the parts never move.
    <Fragment key={place}>
      {part}
      <wbr />
    </Fragment>
  ));
}
