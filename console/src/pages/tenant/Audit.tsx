/** Who changed what, when, from where. */

import { useState } from "react";
import { usePages } from "../../api/list";
import type { AuditEntry } from "../../api/types";
import { PageHead } from "../../shell/Shell";
import { Empty } from "../../ui/Empty";
import { FoldingRow } from "../../ui/FoldingRow";
import { Icon } from "../../ui/Icon";
import { Listing, Table } from "../../ui/Listing";
import { LoadMore } from "../../ui/LoadMore";
import { Time } from "../../ui/Time";

const HEADS = ["When", "Action", "Who", "What", ""];

/** The API compares each of these exactly. */
type Filters = Readonly<Partial<Record<"action" | "actor" | "target_type" | "target_id", string>>>;

const NO_FILTERS: Filters = {};

export default function Audit() {
  const [filters, setFilters] = useState(NO_FILTERS);
  const log = usePages<AuditEntry>("audit-log", filters);
  const isFiltered = Object.keys(filters).length > 0;
  return (
    <>
      <PageHead title="Audit log">
        <FilterBar filters={filters} onChange={setFilters} />
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
  readonly onChange: (filters: Filters) => void;
}

function FilterBar({ filters, onChange }: FilterBarProps) {
  const { action = "", ...others } = filters;
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
      <ActionInput
        key={action}
        action={action}
        onChange={(chosen) =>
          chosen === "" ? without("action") : onChange({ ...filters, action: chosen })
        }
      />
    </>
  );
}

interface ActionInputProps {
  readonly action: string;
  readonly onChange: (action: string) => void;
}

/** Enter applies it: the API compares whole names, so half a name would find nothing. */
function ActionInput({ action, onChange }: ActionInputProps) {
  const [text, setText] = useState(action);
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
        aria-label="Action"
        placeholder="Action, such as api_key.created"
        size={30}
        value={text}
        onChange={({ target }) => {
          setText(target.value);
          if (target.value === "" && action !== "") onChange("");
        }}
      />
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
    ["This person or key", { actor }],
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
        From {entry.address ?? "within"}, request <code>{entry.request_id}</code>
      </p>
    </div>
  );
}
