/** Recent errors: rejected calls, failed deliveries, and failed background work. */

import { useState } from "react";
import { usePages } from "../../api/list";
import type { Area, ErrorEntry } from "../../api/types";
import { PageHead } from "../../shell/Shell";
import { Empty } from "../../ui/Empty";
import { FoldingRow } from "../../ui/FoldingRow";
import { Icon } from "../../ui/Icon";
import { Listing, Table } from "../../ui/Listing";
import { LoadMore } from "../../ui/LoadMore";
import { momentText, Time } from "../../ui/Time";
import { remedyOf } from "./remedies";
import "./errors.css";

/** Servers write errors down every second. */
const REFRESH_MS = 2_000;
const HEADS = ["Last seen", "Error", "Where", "Times", ""];
const NUMBERS = ["Times"];

const AREAS: Readonly<Record<Area, string>> = {
  request: "Refused calls",
  webhook: "Webhooks",
  task: "Background work",
  live: "Subscriptions",
  aggregate: "Aggregates",
  source: "Sources",
};

interface Narrowed {
  readonly area: Area | "";
  readonly code: string;
  readonly requestId: string;
}

const EVERYTHING: Narrowed = { area: "", code: "", requestId: "" };

export default function Errors() {
  const [narrowed, setNarrowed] = useState(EVERYTHING);
  const errors = usePages<ErrorEntry>("errors", asFilters(narrowed), { refetchMs: REFRESH_MS });
  const isNarrowed = Object.values(narrowed).some((value) => value !== "");
  return (
    <>
      <PageHead title="Errors">
        <Narrowing narrowed={narrowed} onChange={setNarrowed} />
      </PageHead>
      <div className="page-body">
        <div className="column wide">
          <Listing
            read={errors}
            empty={<Nothing isNarrowed={isNarrowed} onWiden={() => setNarrowed(EVERYTHING)} />}
          >
            {(entries) => (
              <Table heads={HEADS} numbers={NUMBERS}>
                {entries.map((entry) => (
                  <Row
                    key={entry.id}
                    entry={entry}
                    onCode={(code) => setNarrowed({ ...narrowed, code })}
                  />
                ))}
              </Table>
            )}
          </Listing>
          <LoadMore read={errors} />
        </div>
      </div>
    </>
  );
}

function asFilters({ area, code, requestId }: Narrowed): Record<string, string> {
  const filters = { area, code: code.trim(), request_id: requestId.trim() };
  return Object.fromEntries(Object.entries(filters).filter(([, value]) => value !== ""));
}

interface NarrowingProps {
  readonly narrowed: Narrowed;
  readonly onChange: (narrowed: Narrowed) => void;
}

function Narrowing({ narrowed, onChange }: NarrowingProps) {
  return (
    <>
      {narrowed.code !== "" && (
        <button
          type="button"
          className="button small"
          aria-label={`Also show codes other than ${narrowed.code}`}
          onClick={() => onChange({ ...narrowed, code: "" })}
        >
          <span className="mono">{narrowed.code}</span>
          <Icon name="close" size={11} />
        </button>
      )}
      <select
        className="select small"
        aria-label="Kind of error"
        value={narrowed.area}
        onChange={({ target }) => onChange({ ...narrowed, area: target.value as Area })}
      >
        <option value="">All errors</option>
        {Object.entries(AREAS).map(([area, title]) => (
          <option key={area} value={area}>
            {title}
          </option>
        ))}
      </select>
      <input
        className="input small mono request-id"
        type="search"
        aria-label="Request id"
        placeholder="Request id"
        value={narrowed.requestId}
        onChange={({ target }) => onChange({ ...narrowed, requestId: target.value })}
      />
    </>
  );
}

interface NothingProps {
  readonly isNarrowed: boolean;
  readonly onWiden: () => void;
}

function Nothing({ isNarrowed, onWiden }: NothingProps) {
  if (!isNarrowed) {
    return (
      <Empty icon="check" title="No errors">
        Rejected calls, failed deliveries and failed tasks appear here as they happen, with what to
        do about them. They are kept for a week.
      </Empty>
    );
  }
  return (
    <Empty
      icon="search"
      title="No such error"
      actions={
        <button type="button" className="button" onClick={onWiden}>
          Show all errors
        </button>
      }
    >
      There was no error of this kind within the last week.
    </Empty>
  );
}

/** From this status on it is the server's fault, or a receiver's. */
const SERVER_FAULT = 500;

function toneOf({ area, status }: ErrorEntry): "bad" | "warn" {
  return area === "request" && (status ?? 0) < SERVER_FAULT ? "warn" : "bad";
}

interface RowProps {
  readonly entry: ErrorEntry;
  readonly onCode: (code: string) => void;
}

function Row({ entry, onCode }: RowProps) {
  return (
    <FoldingRow
      label={entry.code}
      cells={HEADS.length}
      details={() => <Details entry={entry} onCode={onCode} />}
    >
      <td className="soft">
        <Time at={entry.last_at} />
      </td>
      <td className="error-what">
        <span className={`badge ${toneOf(entry)}`}>{entry.status ?? AREAS[entry.area]}</span>{" "}
        <strong className="mono">{entry.code}</strong>
      </td>
      <td className="mono cut" title={entry.place}>
        {entry.place || "–"}
      </td>
      <td className="number">{entry.count.toLocaleString("en")}</td>
    </FoldingRow>
  );
}

function Details({ entry, onCode }: RowProps) {
  const remedy = remedyOf(entry.code);
  return (
    <div className="error-details">
      {entry.detail !== "" && <p className="said">{entry.detail}</p>}
      {remedy !== undefined && (
        <div className="remedy">
          <div>
            <h3>When it happens</h3>
            <p>
              <Words text={remedy.when} />
            </p>
          </div>
          <div>
            <h3>What to do</h3>
            <p>
              <Words text={remedy.what} />
            </p>
          </div>
        </div>
      )}
      <dl className="facts">
        <Fact name="Where" value={entry.place} />
        <Fact name="Who" value={entry.actor} />
        <Fact name="First seen" value={momentText(entry.at)} />
        <Fact name="Last seen" value={momentText(entry.last_at)} />
        <Fact name="Last request id" value={entry.request_id} />
      </dl>
      <div>
        <button type="button" className="button small" onClick={() => onCode(entry.code)}>
          <Icon name="filter" size={12} /> Only {entry.code}
        </button>
      </div>
    </div>
  );
}

function Fact({ name, value }: { readonly name: string; readonly value: string }) {
  if (value === "") return null;
  return (
    <div>
      <dt>{name}</dt>
      <dd className="mono">{value}</dd>
    </div>
  );
}

/** Text in which backquotes mark code. */
function Words({ text }: { readonly text: string }) {
  return text.split("`").map((part, place) =>
    place % 2 === 1 ? (
      // biome-ignore lint/suspicious/noArrayIndexKey: the parts never move.
      <code key={place}>{part}</code>
    ) : (
      part
    ),
  );
}
