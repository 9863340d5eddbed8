/** The lookups: collection, field, and the name under which the result is shown. */

import { useId } from "react";
import { Icon } from "../../../ui/Icon";
import { Menu, MenuItem } from "../../../ui/Menu";
import { type Chosen, MAX_LOOKUPS, newLookup } from "./lookups";

interface LookupChipsProps {
  readonly chosen: readonly Chosen[];
  readonly collections: readonly string[];
  /** Fields that may refer to others. */
  readonly fields: readonly string[];
  readonly onChange: (chosen: readonly Chosen[]) => void;
}

export function LookupChips({ chosen, collections, fields, onChange }: LookupChipsProps) {
  return (
    <>
      {chosen.map((lookup) => (
        <Chip
          key={lookup.key}
          lookup={lookup}
          collections={collections}
          fields={fields}
          onChange={(next) =>
            onChange(chosen.map((current) => (current.key === lookup.key ? next : current)))
          }
          onRemove={() => onChange(chosen.filter(({ key }) => key !== lookup.key))}
        />
      ))}
      {chosen.length < MAX_LOOKUPS && (
        <Menu
          label="Add a lookup"
          className="button small"
          button={
            <>
              <Icon name="link" size={13} /> Look up
            </>
          }
        >
          {(close) => (
            <>
              <div className="caption">Include with each document</div>
              {collections.map((from) => (
                <MenuItem
                  key={from}
                  onSelect={() => {
                    onChange([...chosen, newLookup(from)]);
                    close();
                  }}
                >
                  <span className="mono">{from}</span>
                </MenuItem>
              ))}
            </>
          )}
        </Menu>
      )}
    </>
  );
}

interface ChipProps {
  readonly lookup: Chosen;
  readonly collections: readonly string[];
  readonly fields: readonly string[];
  readonly onChange: (lookup: Chosen) => void;
  readonly onRemove: () => void;
}

function Chip({ lookup, collections, fields, onChange, onRemove }: ChipProps) {
  const list = useId();
  return (
    <span
      className="condition"
      title="One document, or a list of documents if the field contains a list"
    >
      <select
        className="field-name"
        aria-label="Look up in"
        value={lookup.from}
        onChange={(event) => onChange({ ...lookup, from: event.target.value })}
      >
        {collections.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
      <input
        className="field-name"
        aria-label="Local field"
        placeholder="by field"
        list={list}
        // biome-ignore lint/a11y/noAutofocus: the lookup was just added, its field comes next.
        autoFocus={lookup.local === ""}
        value={lookup.local}
        onChange={(event) => onChange({ ...lookup, local: event.target.value })}
      />
      <datalist id={list}>
        {fields.map((field) => (
          <option key={field} value={field} />
        ))}
      </datalist>
      <input
        className="field-name"
        aria-label="Show as"
        placeholder={`as ${lookup.from}`}
        value={lookup.as}
        onChange={(event) => onChange({ ...lookup, as: event.target.value })}
      />
      <button type="button" aria-label="Remove the lookup" onClick={onRemove}>
        <Icon name="close" size={11} />
      </button>
    </span>
  );
}
