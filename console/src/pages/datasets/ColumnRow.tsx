/** One column in the form of a table. */

import { uniqueName } from "../../ui/definition/codecs";
import { PartInput, useFieldError, useForm, Wrong } from "../../ui/definition/parts";
import { below } from "../../ui/definition/pointers";
import { Select, sameText } from "../../ui/Field";
import { Icon } from "../../ui/Icon";
import {
  COLUMN_TYPES,
  columnsOf,
  keyOf,
  removeColumn,
  renameColumn,
  setColumn,
  setInKey,
  tableInJson,
} from "./datasetModel";
import type { TablePartProps } from "./TableFields";

interface ColumnProps extends TablePartProps {
  readonly column: string;
  readonly type: string;
  readonly idKeys: readonly string[];
}

export function ColumnRow(props: ColumnProps) {
  const { pointer, table, savedTable, column, type, idKeys, onChange } = props;
  const { mayChange } = useForm();
  const place = below(pointer, "columns", column);
  const wrong = useFieldError(place, true);
  const isSaved = savedTable !== null && Object.hasOwn(columnsOf(savedTable), column);
  const others = Object.keys(columnsOf(table)).filter((other) => other !== column);
  const types = new Set([...COLUMN_TYPES, ...idKeys.map((name) => `id:${name}`), type]);
  return (
    <div className="dataset-column">
      <PartInput
        label="Column"
        isCompact
        container={place}
        what="name"
        pointer={`${place}#name`}
        codec={uniqueName(others)}
        value={column}
        isDisabled={isSaved}
        apply={(to) => onChange(renameColumn(table, column, to))}
      />
      <Select
        label={`Type of ${column}`}
        options={sameText([...types])}
        value={type}
        isDisabled={!mayChange || isSaved}
        onChange={(to) => onChange(setColumn(table, column, to))}
      />
      <KeyBox {...props} />
      {mayChange && !isSaved && (
        <button
          type="button"
          className="button small icon plain"
          aria-label={`Remove ${column}`}
          onClick={() => onChange(removeColumn(table, column))}
        >
          <Icon name="trash" size={13} />
        </button>
      )}
      <Wrong text={wrong} />
    </div>
  );
}

function KeyBox({ table, savedTable, column, onChange }: ColumnProps) {
  const { mayChange } = useForm();
  const key = keyOf(table);
  const isIn = key.includes(column);
  return (
    <label className="check">
      <input
        type="checkbox"
        aria-label={`${column} is in the key`}
        disabled={!mayChange || savedTable !== null || tableInJson(table).includes("key")}
        checked={isIn}
        onChange={({ target }) => onChange(setInKey(table, column, target.checked))}
      />
      {isIn && key.length > 1 ? `key ${key.indexOf(column) + 1}` : "key"}
    </label>
  );
}
