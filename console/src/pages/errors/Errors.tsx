/** Recent errors: rejected calls, failed deliveries, and failed background work. */

import { Link } from "wouter";
import { usePages } from "../../api/list";
import { useTenant } from "../../api/tenant";
import type { Area, ErrorEntry } from "../../api/types";
import { PageHead } from "../../shell/Shell";
import { type Filters, useFilters, without } from "../../shell/useFilters";
import { Empty } from "../../ui/Empty";
import { FoldingRow } from "../../ui/FoldingRow";
import { Icon } from "../../ui/Icon";
import { Listing, Table } from "../../ui/Listing";
import { LoadMore } from "../../ui/LoadMore";
import { Remedy } from "../../ui/Remedy";
import { momentText, Time } from "../../ui/Time";
import "./errors.css";

/** Servers write errors down every second. */
const REFRESH_MS = 2_000;
const HEADS = ["Last seen", "Error", "Where", "Count", ""];
const NUMBERS = ["Count"];

const AREAS: Readonly<Record<Area, string>> = {
  request: "Rejected calls",
  webhook: "Webhooks",
  task: "Background tasks",
  live: "Subscriptions",
  aggregate: "Aggregates",
  source: "Sources",
};

const NAMES = ["area", "code", "request_id"] as const;

type ErrorFilters = Filters<(typeof NAMES)[number]>;

export default function Errors() {
  const [filters, change] = useFilters(NAMES);
  const errors = usePages<ErrorEntry>("errors", filters, { refetchMs: REFRESH_MS });
  const isFiltered = Object.keys(filters).length > 0;
  return (
    <>
      <PageHead title="Errors">
        <FilterTools filters={filters} onChange={change} />
      </PageHead>
      <div className="page-body">
        <div className="column">
          <Listing
            read={errors}
            empty={<Nothing isFiltered={isFiltered} onClear={() => change(without(NAMES))} />}
          >
            {(entries) => (
              <Table stacks heads={HEADS} numbers={NUMBERS}>
                {entries.map((entry) => (
                  <Row key={entry.id} entry={entry} onCode={(code) => change({ code })} />
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

interface FilterToolsProps {
  readonly filters: ErrorFilters;
  readonly onChange: (changed: ErrorFilters) => void;
}

function FilterTools({ filters, onChange }: FilterToolsProps) {
  const { area = "", code = "", request_id: requestId = "" } = filters;
  return (
    <>
      {code !== "" && (
        <button
          type="button"
          className="button small"
          aria-label={`Remove the filter ${code}`}
          onClick={() => onChange({ code: "" })}
        >
          <span className="mono">{code}</span>
          <Icon name="close" size={11} />
        </button>
      )}
      <select
        className="select small"
        aria-label="Kind of error"
        value={area}
        onChange={({ target }) => onChange({ area: target.value })}
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
        value={requestId}
        onChange={({ target }) => onChange({ request_id: target.value.trim() })}
      />
    </>
  );
}

interface NothingProps {
  readonly isFiltered: boolean;
  readonly onClear: () => void;
}

function Nothing({ isFiltered, onClear }: NothingProps) {
  if (!isFiltered) {
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
      title="No matching errors"
      actions={
        <button type="button" className="button" onClick={onClear}>
          Show all errors
        </button>
      }
    >
      No error of the last week matches the filters.
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
  const { slug } = useTenant();
  const request = new URLSearchParams({ request_id: entry.request_id });
  return (
    <div className="error-details">
      {entry.detail !== "" && <p className="said">{entry.detail}</p>}
      <Remedy code={entry.code} />
      <dl className="facts">
        <Fact name="Where" value={entry.place} />
        <Fact name="Who" value={entry.actor} />
        <Fact name="First seen" value={momentText(entry.at)} />
        <Fact name="Last seen" value={momentText(entry.last_at)} />
        <Fact name="Last request id" value={entry.request_id} />
      </dl>
      <div className="badges">
        <button type="button" className="button small" onClick={() => onCode(entry.code)}>
          <Icon name="filter" size={12} /> Only {entry.code}
        </button>
        {entry.area === "request" && entry.request_id !== "" && (
          <Link className="button small" href={`/t/${slug}/requests?${request}`}>
            <Icon name="list" size={12} /> Show the last request
          </Link>
        )}
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
