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
  readonly gridQuery: GridQuery;
  readonly fields: readonly string[];
  readonly collections: readonly string[];
  readonly problem: string | null;
  readonly onChange: (gridQuery: GridQuery) => void;
}

export function FilterBar({ gridQuery, fields, collections, problem, onChange }: FilterBarProps) {
  function change(condition: Condition) {
    const conditions = gridQuery.conditions.map((current) =>
      current.id === condition.id ? condition : current,
    );
    onChange({ ...gridQuery, conditions });
  }
  function remove(removed: Condition) {
    const conditions = gridQuery.conditions.filter(({ id }) => id !== removed.id);
    onChange({ ...gridQuery, conditions });
  }
  return (
    <>
      {gridQuery.conditions.map((condition) => (
        <ConditionChip
          key={condition.id}
          condition={condition}
          fields={fields}
          onChange={change}
          onRemove={() => remove(condition)}
        />
      ))}
      {gridQuery.filterText !== "" && (
        <FilterText
          text={gridQuery.filterText}
          problem={problem}
          onChange={(filterText) => onChange({ ...gridQuery, filterText })}
        />
      )}
      <FilterMenu gridQuery={gridQuery} fields={fields} onChange={onChange} />
      <SortMenu gridQuery={gridQuery} fields={fields} onChange={onChange} />
      <LookupChips
        chosen={gridQuery.lookups}
        collections={collections}
        fields={fields}
        onChange={(lookups) => onChange({ ...gridQuery, lookups })}
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

function FilterMenu({ gridQuery, fields, onChange }: MenuProps) {
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
                onChange({
                  ...gridQuery,
                  conditions: [...gridQuery.conditions, newCondition(field)],
                });
                close();
              }}
            >
              <span className="mono">{field}</span>
            </MenuItem>
          ))}
          <hr />
          <MenuItem
            onSelect={() => {
              onChange({ ...gridQuery, filterText: gridQuery.filterText || "{}" });
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

function SortMenu({ gridQuery, fields, onChange }: MenuProps) {
  const [first] = gridQuery.sort;
  const label = first === undefined ? "Sort" : `${first[0]} ${first[1] === 1 ? "↑" : "↓"}`;
  return (
    <Menu
      label="Sort"
      className="button small"
      button={
        <>
          <Icon name="sort" size={13} /> {label}
          {gridQuery.sort.length > 1 && ` +${gridQuery.sort.length - 1}`}
        </>
      }
    >
      {(close) => (
        <>
          <div className="caption">Sort by</div>
          {fields.slice(0, 20).map((field) => {
            const direction = gridQuery.sort.find(([name]) => name === field)?.[1];
            return (
              <MenuItem
                key={field}
                onSelect={() => onChange({ ...gridQuery, sort: turned(gridQuery.sort, field) })}
              >
                <span className="mono">{field}</span>
                <span className="end">
                  {direction && (direction === 1 ? "ascending" : "descending")}
                </span>
              </MenuItem>
            );
          })}
          {gridQuery.sort.length > 0 && (
            <>
              <hr />
              <MenuItem
                onSelect={() => {
                  onChange({ ...gridQuery, sort: [] });
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
  const current = sort.find(([name]) => name === field);
  if (current === undefined) return [...sort, [field, 1]];
  if (current[1] === 1) return sort.map((part) => (part === current ? [field, -1] : part));
  return sort.filter((part) => part !== current);
}
