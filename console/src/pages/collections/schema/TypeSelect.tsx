/** The choice of a field's types. */

import { useId } from "react";
import type { JsonObject } from "../../../ui/definition/exactJson";
import { useFieldError, useForm, Wrong } from "../../../ui/definition/parts";
import { below } from "../../../ui/definition/pointers";
import { TYPES, type TypeName, typesOf, typesText, withTypes } from "./schemaModel";

interface TypeProps {
  readonly label: string;
  readonly isCompact?: boolean;
  readonly pointer: string;
  readonly schema: JsonObject;
  readonly onChange: (schema: JsonObject) => void;
}

const ANY = "any";
/** Stands for several types, which the details list. */
const SEVERAL = "several";

export function TypeSelect({ label, isCompact = false, pointer, schema, onChange }: TypeProps) {
  const { mayChange } = useForm();
  const id = useId();
  const wrong = useTypeError(pointer);
  const types = typesOf(schema);
  const value = types === null || types.length > 1 ? SEVERAL : (types[0] ?? ANY);
  return (
    <div className="field">
      <label htmlFor={id} className={isCompact ? "hidden" : "label"}>
        {label}
      </label>
      <select
        id={id}
        className="select"
        aria-invalid={wrong !== undefined}
        disabled={!mayChange || types === null}
        value={value}
        onChange={({ target }) =>
          onChange(withTypes(schema, target.value === ANY ? [] : [target.value as TypeName]))
        }
      >
        <option value={ANY}>any type</option>
        {TYPES.map(([type, text]) => (
          <option key={type} value={type}>
            {text}
          </option>
        ))}
        {value === SEVERAL && <option value={SEVERAL}>{typesText(schema)}</option>}
      </select>
      <Wrong text={wrong} />
    </div>
  );
}

function useTypeError(pointer: string): string | undefined {
  const errors = [
    useFieldError(below(pointer, "type"), true),
    useFieldError(below(pointer, "bsonType"), true),
  ];
  return errors.find((error) => error !== undefined);
}

/** Lets a field have several types. */
export function TypeBoxes({ pointer, schema, onChange }: Omit<TypeProps, "label" | "isCompact">) {
  const { mayChange } = useForm();
  const types = typesOf(schema);
  if (types === null) return null;
  const toggle = (type: TypeName, on: boolean) =>
    onChange(withTypes(schema, on ? [...types, type] : types.filter((other) => other !== type)));
  return (
    <fieldset className="checks" name={pointer}>
      <legend>Allowed types</legend>
      {TYPES.map(([type, text]) => (
        <label key={type} className="check">
          <input
            type="checkbox"
            disabled={!mayChange}
            checked={types.includes(type)}
            onChange={({ target }) => toggle(type, target.checked)}
          />
          {text}
        </label>
      ))}
    </fieldset>
  );
}
