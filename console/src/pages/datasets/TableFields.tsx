/** One table in the form of a dataset: its columns, its key and its views. */

import { uniqueName } from "../../ui/definition/codecs";
import { isObject, isTextList, type JsonObject } from "../../ui/definition/exactJson";
import { EditedInJson, PartInput, useFieldError, useForm, Wrong } from "../../ui/definition/parts";
import { below } from "../../ui/definition/pointers";
import { Icon } from "../../ui/Icon";
import { ColumnRow } from "./ColumnRow";
import type { DatasetFormProps } from "./DatasetForm";
import {
  addColumn,
  columnsOf,
  idKeysOf,
  keyOf,
  removeTable,
  renameTable,
  setTable,
  tableInJson,
  tablesOf,
} from "./datasetModel";
import { Views } from "./Views";

interface TableProps extends DatasetFormProps {
  readonly name: string;
  readonly table: JsonObject;
}

export function TableFields(props: TableProps) {
  const { name, table, definition, saved, onChange } = props;
  const pointer = below("", "tables", name);
  const inJson = tableInJson(table);
  const savedTable = saved === null ? undefined : tablesOf(saved)[name];
  const shared = {
    pointer,
    table,
    savedTable: isObject(savedTable) ? savedTable : null,
    onChange: (to: JsonObject) => onChange(setTable(definition, name, to)),
  };
  return (
    <section className="dataset-table" aria-label={`Definition of ${name}`}>
      <TableName {...props} pointer={pointer} isSaved={isObject(savedTable)} />
      {!inJson.includes("columns") && (
        <Columns {...shared} idKeys={Object.keys(idKeysOf(definition))} />
      )}
      <KeyLine table={table} pointer={pointer} />
      {!inJson.includes("views") && <Views {...shared} />}
      <EditedInJson parts={inJson.map((member) => [member, below(pointer, member)])} />
    </section>
  );
}

interface NameProps extends TableProps {
  readonly pointer: string;
  readonly isSaved: boolean;
}

function TableName({ name, definition, pointer, isSaved, onChange }: NameProps) {
  const { mayChange } = useForm();
  const others = Object.keys(tablesOf(definition)).filter((other) => other !== name);
  return (
    <div className="dataset-table-head">
      <PartInput
        label="Table"
        container={pointer}
        what="name"
        pointer={pointer}
        isDeep={false}
        codec={uniqueName(others)}
        value={name}
        isDisabled={isSaved}
        apply={(to) => onChange(renameTable(definition, name, to))}
      />
      {mayChange && !isSaved && (
        <button
          type="button"
          className="button small icon plain"
          aria-label={`Remove the table ${name}`}
          onClick={() => onChange(removeTable(definition, name))}
        >
          <Icon name="trash" size={13} />
        </button>
      )}
    </div>
  );
}

export interface TablePartProps {
  readonly pointer: string;
  readonly table: JsonObject;
  /** The table as it exists, to which columns can be added; null for a new one. */
  readonly savedTable: JsonObject | null;
  readonly onChange: (table: JsonObject) => void;
}

function Columns(props: TablePartProps & { readonly idKeys: readonly string[] }) {
  const { pointer, table, onChange } = props;
  const { mayChange } = useForm();
  const wrong = useFieldError(below(pointer, "columns"));
  return (
    <div className="dataset-columns">
      {Object.entries(columnsOf(table)).map(([column, type], place) => (
        <ColumnRow
          // biome-ignore lint/suspicious/noArrayIndexKey: a column that is renamed remains the same row.
          key={place}
          {...props}
          column={column}
          type={String(type)}
        />
      ))}
      <Wrong text={wrong} />
      {mayChange && (
        <button
          type="button"
          className="button small start"
          onClick={() => onChange(addColumn(table))}
        >
          <Icon name="plus" size={13} /> Add a column
        </button>
      )}
    </div>
  );
}

/** Says in which order rows are stored. */
function KeyLine({ table, pointer }: Pick<TablePartProps, "table" | "pointer">) {
  const wrong = useFieldError(below(pointer, "key"), true);
  const key = keyOf(table);
  return (
    <div>
      {isTextList(table.key) && (
        <p className="soft">
          {key.length === 0 ? (
            "Mark the columns that identify a row as its key."
          ) : (
            <>
              <code>{key.join(", ")}</code> identifies a row. Rows are stored in its order.
            </>
          )}
        </p>
      )}
      <Wrong text={wrong} />
    </div>
  );
}
