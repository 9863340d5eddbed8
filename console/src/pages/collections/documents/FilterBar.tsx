/** Builds the grid's query: conditions one by one, or a filter as text, and a sort. */

import { Icon } from "../../../ui/Icon";
import { Menu, MenuItem } from "../../../ui/Menu";
import {
  type Condition,
  type GridQuery,
  newCondition,
  OPERATORS,
  type Operator,
} from "./gridQuery";
import { LookupChips } from "./LookupChips";

/** The menu of fields lists this many. */
const MAX_FIELDS = 14;

interface FilterBarProps {
  readonly asked: GridQuery;
  readonly fields: readonly string[];
  readonly collections: readonly string[];
  readonly problem: string | null;
  readonly onChange: (asked: GridQuery) => void;
}

export function FilterBar({ asked, fields, collections, problem, onChange }: FilterBarProps) {
  function change(condition: Condition) {
    const conditions = asked.conditions.map((held) =>
      held.id === condition.id ? condition : held,
    );
    onChange({ ...asked, conditions });
  }
  function remove(removed: Condition) {
    const conditions = asked.conditions.filter(({ id }) => id !== removed.id);
    onChange({ ...asked, conditions });
  }
  return (
    <>
      {asked.conditions.map((condition) => (
        <ConditionChip
          key={condition.id}
          condition={condition}
          fields={fields}
          onChange={change}
          onRemove={() => remove(condition)}
        />
      ))}
      {asked.filterText !== "" && (
        <FilterText
          text={asked.filterText}
          problem={problem}
          onChange={(filterText) => onChange({ ...asked, filterText })}
        />
      )}
      <FilterMenu asked={asked} fields={fields} onChange={onChange} />
      <SortMenu asked={asked} fields={fields} onChange={onChange} />
      <LookupChips
        chosen={asked.lookups}
        collections={collections}
        fields={fields}
        onChange={(lookups) => onChange({ ...asked, lookups })}
      />
    </>
  );
}

interface FilterTextProps {
  readonly text: string;
  readonly problem: string | null;
  readonly onChange: (text: string) => void;
}

function FilterText({ text, problem, onChange }: FilterTextProps) {
  return (
    <>
      <input
        className="input small mono filter-text"
        aria-label="Filter in the query language"
        aria-invalid={problem !== null}
        title={problem ?? ""}
        value={text}
        onChange={(event) => onChange(event.target.value || " ")}
      />
      <button
        type="button"
        className="button small icon plain"
        aria-label="Remove the filter"
        onClick={() => onChange("")}
      >
        <Icon name="close" size={12} />
      </button>
    </>
  );
}

type MenuProps = Omit<FilterBarProps, "problem" | "collections">;

function FilterMenu({ asked, fields, onChange }: MenuProps) {
  const label = (
    <>
      <Icon name="filter" size={13} /> Filter
    </>
  );
  return (
    <Menu label="Add a filter" className="button small" button={label}>
      {(close) => (
        <>
          <div className="caption">By field</div>
          {fields.slice(0, MAX_FIELDS).map((field) => (
            <MenuItem
              key={field}
              onSelect={() => {
                onChange({ ...asked, conditions: [...asked.conditions, newCondition(field)] });
                close();
              }}
            >
              <span className="mono">{field}</span>
            </MenuItem>
          ))}
          <hr />
          <MenuItem
            onSelect={() => {
              onChange({ ...asked, filterText: asked.filterText || "{}" });
              close();
            }}
          >
            <Icon name="code" size={14} /> As a query
          </MenuItem>
        </>
      )}
    </Menu>
  );
}

interface ChipProps {
  readonly condition: Condition;
  readonly fields: readonly string[];
  readonly onChange: (condition: Condition) => void;
  readonly onRemove: () => void;
}

function ConditionChip({ condition, fields, onChange, onRemove }: ChipProps) {
  const list = `fields-${condition.id}`;
  return (
    <span className="condition">
      <input
        className="field-name"
        aria-label="Field"
        placeholder="field"
        list={list}
        value={condition.field}
        onChange={(event) => onChange({ ...condition, field: event.target.value })}
      />
      <datalist id={list}>
        {fields.map((field) => (
          <option key={field} value={field} />
        ))}
      </datalist>
      <select
        aria-label="Operator"
        value={condition.operator}
        onChange={(event) => onChange({ ...condition, operator: event.target.value as Operator })}
      >
        {OPERATORS.map(([operator, text]) => (
          <option key={operator} value={operator}>
            {text}
          </option>
        ))}
      </select>
      <input
        className="value-text"
        aria-label="Value"
        placeholder={condition.operator === "exists" ? "true" : "value"}
        // biome-ignore lint/a11y/noAutofocus: the condition was just added, its value comes next.
        autoFocus={condition.text === ""}
        value={condition.text}
        onChange={(event) => onChange({ ...condition, text: event.target.value })}
      />
      <button type="button" aria-label="Remove the condition" onClick={onRemove}>
        <Icon name="close" size={11} />
      </button>
    </span>
  );
}

function SortMenu({ asked, fields, onChange }: MenuProps) {
  const [first] = asked.sort;
  const label = first === undefined ? "Sort" : `${first[0]} ${first[1] === 1 ? "↑" : "↓"}`;
  return (
    <Menu
      label="Sort"
      className="button small"
      button={
        <>
          <Icon name="sort" size={13} /> {label}
          {asked.sort.length > 1 && ` +${asked.sort.length - 1}`}
        </>
      }
    >
      {(close) => (
        <>
          <div className="caption">Sort by</div>
          {fields.slice(0, 20).map((field) => {
            const direction = asked.sort.find(([name]) => name === field)?.[1];
            return (
              <MenuItem
                key={field}
                onSelect={() => onChange({ ...asked, sort: turned(asked.sort, field) })}
              >
                <span className="mono">{field}</span>
                <span className="end">
                  {direction && (direction === 1 ? "ascending" : "descending")}
                </span>
              </MenuItem>
            );
          })}
          {asked.sort.length > 0 && (
            <>
              <hr />
              <MenuItem
                onSelect={() => {
                  onChange({ ...asked, sort: [] });
                  close();
                }}
              >
                No sort
              </MenuItem>
            </>
          )}
        </>
      )}
    </Menu>
  );
}

/** Turns a field's part of a sort on: ascending, then descending, then off. */
export function turned(sort: GridQuery["sort"], field: string): GridQuery["sort"] {
  const held = sort.find(([name]) => name === field);
  if (held === undefined) return [...sort, [field, 1]];
  if (held[1] === 1) return sort.map((part) => (part === held ? [field, -1] : part));
  return sort.filter((part) => part !== held);
}
