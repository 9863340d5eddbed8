/** A field in the form of a schema: its name, its type, and what else it requires. */

import { useState } from "react";
import { uniqueName } from "../../../ui/definition/codecs";
import { isObject, type JsonObject } from "../../../ui/definition/exactJson";
import { EditedInJson, PartInput, useFieldError, useForm } from "../../../ui/definition/parts";
import { below } from "../../../ui/definition/pointers";
import { Icon } from "../../../ui/Icon";
import { Constraints } from "./Constraints";
import {
  fieldsOf,
  isRequired,
  isShown,
  removeField,
  renameField,
  setField,
  setRequired,
  summaryOf,
} from "./schemaModel";
import { TypeSelect } from "./TypeSelect";

interface RowProps {
  /** The pointer to the schema of the object that has the field. */
  readonly parent: string;
  readonly schema: JsonObject;
  readonly name: string;
  readonly onChange: (schema: JsonObject) => void;
}

export function FieldRow(props: RowProps) {
  const { parent, schema, name, onChange } = props;
  const pointer = below(parent, "properties", name);
  const field = fieldsOf(schema)[name];
  const hasError = useFieldError(pointer, true) !== undefined;
  const [isOpen, setOpen] = useState(false);
  const change = (value: JsonObject) => onChange(setField(schema, name, value));
  if (!isObject(field)) return <EditedInJson parts={[[name, pointer]]} />;
  const isExpanded = isOpen || hasError;
  return (
    <div className="schema-field">
      <div className="schema-row">
        <button
          type="button"
          className="button small icon plain"
          aria-expanded={isExpanded}
          aria-label={`Details of ${name}`}
          onClick={() => setOpen(!isOpen)}
        >
          <Icon name={isExpanded ? "down" : "chevron"} size={12} />
        </button>
        <NameInput {...props} pointer={pointer} />
        <TypeSelect
          label={`Type of ${name}`}
          pointer={pointer}
          schema={field}
          onChange={change}
          isCompact
        />
        <RequiredBox {...props} />
        <span className="schema-summary cut">{isExpanded ? "" : summaryOf(field)}</span>
        <RemoveButton {...props} />
      </div>
      {isExpanded && (
        <div className="schema-details">
          <Constraints name={name} pointer={pointer} schema={field} onChange={change} />
        </div>
      )}
    </div>
  );
}

function NameInput(props: RowProps & { readonly pointer: string }) {
  const { schema, name, pointer, onChange } = props;
  const others = Object.keys(fieldsOf(schema)).filter((other) => other !== name);
  return (
    <PartInput
      label="Field"
      isCompact
      container={pointer}
      what="name"
      pointer={pointer}
      isDeep={false}
      codec={uniqueName(others)}
      value={name}
      apply={(to) => onChange(renameField(schema, name, to))}
    />
  );
}

function RequiredBox({ schema, name, onChange }: RowProps) {
  const { mayChange } = useForm();
  return (
    <label className="check">
      <input
        type="checkbox"
        aria-label={`${name} is required`}
        disabled={!mayChange || !isShown(schema, "required")}
        checked={isRequired(schema, name)}
        onChange={({ target }) => onChange(setRequired(schema, name, target.checked))}
      />
      required
    </label>
  );
}

function RemoveButton({ schema, name, onChange }: RowProps) {
  const { mayChange } = useForm();
  return (
    mayChange && (
      <button
        type="button"
        className="button small icon plain"
        aria-label={`Remove ${name}`}
        onClick={() => onChange(removeField(schema, name))}
      >
        <Icon name="trash" size={13} />
      </button>
    )
  );
}
