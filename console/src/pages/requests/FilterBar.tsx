/** Narrows the request log. */

import { useCallback } from "react";
import { Icon } from "../../ui/Icon";
import { CUSTOM, METHODS, PATTERNS, PERIODS, type RequestFilters } from "./requestFilters";
import { TextFilter } from "./TextFilter";

interface FilterBarProps {
  readonly filters: RequestFilters;
  readonly onChange: (changed: RequestFilters) => void;
}

export function FilterBar({ filters, onChange }: FilterBarProps) {
  return (
    <search className="request-filters" aria-label="Filters">
      <Choice
        label="Method"
        all="All methods"
        options={METHODS.map((method) => [method, method])}
        value={filters.method ?? ""}
        onChange={(method) => onChange({ method })}
      />
      <Texts filters={filters} onChange={onChange} />
      <Choice
        label="Period"
        all="Last 24 hours"
        options={[...PERIODS, [CUSTOM, "Custom period"]]}
        value={filters.period ?? ""}
        onChange={(period) => onChange({ period, since: "", until: "" })}
      />
      {filters.period === CUSTOM && (
        <>
          <Moment
            label="From"
            value={filters.since ?? ""}
            onChange={(since) => onChange({ since })}
          />
          <Moment
            label="To"
            value={filters.until ?? ""}
            onChange={(until) => onChange({ until })}
          />
        </>
      )}
      {(["actor", "code"] as const).map((name) => (
        <Chip key={name} value={filters[name]} onRemove={() => onChange({ [name]: "" })} />
      ))}
    </search>
  );
}

function Texts({ filters, onChange }: FilterBarProps) {
  return (
    <>
      <TextFilter
        label="Route"
        placeholder="Route, such as /query"
        className="grow"
        value={filters.route ?? ""}
        onChange={useCallback((route) => onChange({ route }), [onChange])}
      />
      <TextFilter
        label="Status"
        placeholder="Status"
        className="short"
        list="request-statuses"
        pattern={PATTERNS.status}
        value={filters.status ?? ""}
        onChange={useCallback((status) => onChange({ status }), [onChange])}
      />
      <datalist id="request-statuses">
        {["2xx", "3xx", "4xx", "5xx"].map((status) => (
          <option key={status} value={status} />
        ))}
      </datalist>
      <TextFilter
        label="Minimum duration in milliseconds"
        placeholder="≥ ms"
        className="short"
        pattern={PATTERNS.min_duration_ms}
        value={filters.min_duration_ms ?? ""}
        onChange={useCallback((least) => onChange({ min_duration_ms: least }), [onChange])}
      />
      <TextFilter
        label="Request id"
        placeholder="Request id"
        className="id"
        value={filters.request_id ?? ""}
        onChange={useCallback((id) => onChange({ request_id: id }), [onChange])}
      />
    </>
  );
}

interface ChoiceProps {
  readonly label: string;
  /** The option without a filter. */
  readonly all: string;
  readonly options: readonly (readonly [value: string, title: string])[];
  readonly value: string;
  readonly onChange: (value: string) => void;
}

function Choice({ label, all, options, value, onChange }: ChoiceProps) {
  return (
    <select
      className="select small"
      aria-label={label}
      value={value}
      onChange={({ target }) => onChange(target.value)}
    >
      <option value="">{all}</option>
      {options.map(([id, title]) => (
        <option key={id} value={id}>
          {title}
        </option>
      ))}
    </select>
  );
}

interface MomentProps {
  readonly label: string;
  /** In UTC, or "". */
  readonly value: string;
  readonly onChange: (value: string) => void;
}

function Moment({ label, value, onChange }: MomentProps) {
  return (
    <label className="moment">
      <span className="soft">{label}</span>
      <input
        className="input small"
        type="datetime-local"
        value={localText(value)}
        onChange={({ target }) =>
          onChange(target.value === "" ? "" : new Date(target.value).toISOString())
        }
      />
    </label>
  );
}

const MINUTE_MS = 60_000;

/** A moment in the reader's time zone, as the input takes it. */
function localText(utc: string): string {
  const moment = new Date(utc);
  if (Number.isNaN(moment.getTime())) return "";
  const local = new Date(moment.getTime() - moment.getTimezoneOffset() * MINUTE_MS);
  return local.toISOString().slice(0, "2026-11-25T23:00".length);
}

interface ChipProps {
  readonly value: string | undefined;
  readonly onRemove: () => void;
}

function Chip({ value, onRemove }: ChipProps) {
  if (value === undefined) return null;
  return (
    <button
      type="button"
      className="button small"
      aria-label={`Remove the filter ${value}`}
      onClick={onRemove}
    >
      <span className="mono cut">{value}</span>
      <Icon name="close" size={11} />
    </button>
  );
}
