/** The form of a collection's schema. */

import { useEffect, useRef } from "react";
import { isObject, type Json, type JsonObject, setMember } from "../../../ui/definition/exactJson";
import { EditedInJson, useForm } from "../../../ui/definition/parts";
import { below } from "../../../ui/definition/pointers";
import { Icon } from "../../../ui/Icon";
import { FieldRow } from "./FieldRow";
import { addField, fieldsOf, isShown, keywordsInJson, otherRequired } from "./schemaModel";
import "./schema.css";

const START: JsonObject = { type: "object", properties: {} };

interface SchemaFormProps {
  readonly value: Json;
  readonly onChange: (value: Json) => void;
}

export function SchemaForm({ value, onChange }: SchemaFormProps) {
  const { mayChange } = useForm();
  if (isObject(value)) {
    return (
      <>
        <Fields pointer="" schema={value} onChange={onChange} />
        {mayChange && (
          <button type="button" className="button small plain start" onClick={() => onChange(null)}>
            Remove the schema
          </button>
        )}
      </>
    );
  }
  return (
    <div className="schema-none">
      <p className="soft">There is no schema: every document is accepted.</p>
      {mayChange && (
        <button type="button" className="button" onClick={() => onChange(addField(START))}>
          <Icon name="plus" size={13} /> Add a field
        </button>
      )}
    </div>
  );
}

interface FieldsProps {
  readonly pointer: string;
  readonly schema: JsonObject;
  readonly onChange: (schema: JsonObject) => void;
}

/** The fields of an object. */
export function Fields({ pointer, schema, onChange }: FieldsProps) {
  const { mayChange } = useForm();
  const names = Object.keys(fieldsOf(schema));
  const { list, markAdded } = useFocusOnAdded(names.length);
  return (
    <div className="schema-fields" ref={list}>
      {names.map((name, place) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a field that is renamed remains the same row.
        <FieldRow key={place} parent={pointer} schema={schema} name={name} onChange={onChange} />
      ))}
      <div className="schema-foot">
        {mayChange && isShown(schema, "properties") && (
          <button
            type="button"
            className="button small"
            onClick={() => {
              markAdded();
              onChange(addField(schema));
            }}
          >
            <Icon name="plus" size={13} /> Add a field
          </button>
        )}
        <OtherFields schema={schema} onChange={onChange} />
      </div>
      <EditedInJson
        parts={[
          ...keywordsInJson(schema).map((name) => [name, below(pointer, name)] as const),
          ...otherRequired(schema).map(
            (name) => [`required: ${name}`, below(pointer, "required")] as const,
          ),
        ]}
      />
    </div>
  );
}

/** Selects the name of a field that was added, so that it can be typed over. */
function useFocusOnAdded(count: number) {
  const list = useRef<HTMLDivElement>(null);
  const isAdded = useRef(false);
  // biome-ignore lint/correctness/useExhaustiveDependencies: it is the new row that has the input.
  useEffect(() => {
    if (!isAdded.current) return;
    isAdded.current = false;
    const inputs = list.current?.querySelectorAll<HTMLInputElement>(ROW_NAMES);
    inputs?.[inputs.length - 1]?.select();
  }, [count]);
  return {
    list,
    markAdded: () => {
      isAdded.current = true;
    },
  };
}

const ROW_NAMES = ":scope > .schema-field > .schema-row .input";

function OtherFields({ schema, onChange }: Omit<FieldsProps, "pointer">) {
  const { mayChange } = useForm();
  return (
    <label className="check">
      <input
        type="checkbox"
        disabled={!mayChange || !isShown(schema, "additionalProperties")}
        checked={schema.additionalProperties !== false}
        onChange={({ target }) =>
          onChange(setMember(schema, "additionalProperties", target.checked ? undefined : false))
        }
      />
      Allow other fields
    </label>
  );
}
