/** Who changed what, when, from where. */

import { useId, useState } from "react";
import { usePages } from "../../api/list";
import type { AuditEntry } from "../../api/types";
import { PageHead } from "../../shell/Shell";
import { Empty } from "../../ui/Empty";
import { FoldingRow } from "../../ui/FoldingRow";
import { Icon } from "../../ui/Icon";
import { Listing, Table } from "../../ui/Listing";
import { LoadMore } from "../../ui/LoadMore";
import { Time } from "../../ui/Time";

const HEADS = ["Time", "Action", "Actor", "Target", ""];

/** `action` and `actor` may be the start of a name. */
type Filters = Readonly<Partial<Record<"action" | "actor" | "target_type" | "target_id", string>>>;

const NO_FILTERS: Filters = {};

export default function Audit() {
  const [filters, setFilters] = useState(NO_FILTERS);
  const log = usePages<AuditEntry>("audit-log", filters);
  const isFiltered = Object.keys(filters).length > 0;
  return (
    <>
      <PageHead title="Audit log">
        <FilterBar filters={filters} entries={log.data ?? []} onChange={setFilters} />
      </PageHead>
      <div className="page-body">
        <div className="column">
          <Listing
            read={log}
            empty={
              isFiltered ? (
                <Empty
                  icon="search"
                  title="No matching entries"
                  actions={
                    <button type="button" className="button" onClick={() => setFilters(NO_FILTERS)}>
                      Clear the filters
                    </button>
                  }
                >
                  No entry of the audit log matches all of the filters.
                </Empty>
              ) : (
                <Empty icon="log" title="No entries yet">
                  Every change to keys, members, collections and settings is recorded here, in the
                  transaction that makes it.
                </Empty>
              )
            }
          >
            {(items) => (
              <Table stacks heads={HEADS}>
                {items.map((entry) => (
                  <Entry
                    key={entry.id}
                    entry={entry}
                    onFilter={(more) => setFilters({ ...filters, ...more })}
                  />
                ))}
              </Table>
            )}
          </Listing>
          <LoadMore read={log} />
        </div>
      </div>
    </>
  );
}

interface FilterBarProps {
  readonly filters: Filters;
  /** Their actions and actors are offered. */
  readonly entries: readonly AuditEntry[];
  readonly onChange: (filters: Filters) => void;
}

function FilterBar({ filters, entries, onChange }: FilterBarProps) {
  const { action = "", actor = "", ...others } = filters;
  function without(name: string) {
    const remaining = Object.entries(filters).filter(([field]) => field !== name);
    onChange(Object.fromEntries(remaining));
  }
  return (
    <>
      {Object.entries(others).map(([name, value]) => (
        <button
          key={name}
          type="button"
          className="button small"
          aria-label={`Remove the filter ${name} ${value}`}
          onClick={() => without(name)}
        >
          <span className="mono cut">{value}</span>
          <Icon name="close" size={11} />
        </button>
      ))}
      <FilterInput
        key={`actor ${actor}`}
        label="Actor"
        value={actor}
        offered={entries.map(({ actor_label: label, actor: id }) => label || id)}
        onChange={(chosen) =>
          chosen === "" ? without("actor") : onChange({ ...filters, actor: chosen })
        }
      />
      <FilterInput
        key={`action ${action}`}
        label="Action"
        value={action}
        offered={entries.map((entry) => entry.action)}
        onChange={(chosen) =>
          chosen === "" ? without("action") : onChange({ ...filters, action: chosen })
        }
      />
    </>
  );
}

interface FilterInputProps {
  readonly label: string;
  readonly value: string;
  readonly offered: readonly string[];
  readonly onChange: (value: string) => void;
}

/** A value that the log is filtered by. Enter, or the choice of an offered value, applies it. */
function FilterInput({ label, value, offered, onChange }: FilterInputProps) {
  const [text, setText] = useState(value);
  const values = [...new Set(offered)].sort();
  const list = useId();
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        onChange(text.trim());
      }}
    >
      <input
        className="input small mono"
        type="search"
        aria-label={label}
        placeholder={label}
        list={list}
        size={24}
        value={text}
        onChange={({ target }) => {
          setText(target.value);
          if (target.value === "" ? value !== "" : values.includes(target.value))
            onChange(target.value);
        }}
      />
      <datalist id={list}>
        {values.map((one) => (
          <option key={one} value={one} />
        ))}
      </datalist>
    </form>
  );
}

interface EntryProps {
  readonly entry: AuditEntry;
  readonly onFilter: (more: Filters) => void;
}

function Entry({ entry, onFilter }: EntryProps) {
  return (
    <FoldingRow
      label={entry.action}
      cells={HEADS.length}
      details={() => <Details entry={entry} onFilter={onFilter} />}
    >
      <td className="soft">
        <Time at={entry.at} />
      </td>
      <td className="mono">{entry.action}</td>
      <td>{entry.actor_label || entry.actor}</td>
      <td className="mono soft cut" title={entry.target_id}>
        {entry.target_type} {nameOf(entry)}
      </td>
    </FoldingRow>
  );
}

function nameOf({ after, before, target_id: id }: AuditEntry): string {
  const name = after?.name ?? before?.name ?? after?.email ?? before?.email;
  return typeof name === "string" ? name : id.slice(0, 13);
}

function Details({ entry, onFilter }: EntryProps) {
  const { action, actor, target_type, target_id } = entry;
  const offers: readonly (readonly [string, Filters])[] = [
    ["This action", { action }],
    ["This actor", { actor }],
    ["This target", { target_type, target_id }],
  ];
  return (
    <div className="audit-details">
      <p className="badges">
        <span className="soft">Show only:</span>
        {offers.map(([title, filters]) => (
          <button
            key={title}
            type="button"
            className="button small"
            onClick={() => onFilter(filters)}
          >
            {title}
          </button>
        ))}
      </p>
      {(["before", "after"] as const).map((side) => (
        <div key={side}>
          <h3 className="soft">{side}</h3>
          <pre className="mono">
            {entry[side] === null ? "–" : JSON.stringify(entry[side], null, 2)}
          </pre>
        </div>
      ))}
      <p className="soft">
        From {entry.address ?? "the server itself"}, request <code>{entry.request_id}</code>
      </p>
    </div>
  );
}
