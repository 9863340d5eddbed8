/** A field for each parameter of a statement. */

import { Field } from "../../../ui/Field";
import type { StatementInputs } from "./statement";

interface ParametersProps {
  readonly names: readonly string[];
  readonly values: StatementInputs["parameters"];
  readonly onChange: (values: StatementInputs["parameters"]) => void;
  readonly onSubmit: () => void;
}

export function Parameters({ names, values, onChange, onSubmit }: ParametersProps) {
  if (names.length === 0) return null;
  return (
    <fieldset className="sql-parameters" aria-label="Parameters">
      {names.map((name) => (
        <Field key={name} label={`$${name}`}>
          <input
            className="input small mono"
            autoComplete="off"
            spellCheck={false}
            placeholder='text, 100, null, {"$date": …}'
            value={values[name] ?? ""}
            onChange={(event) => onChange({ ...values, [name]: event.target.value })}
            onKeyDown={(event) => {
              if (event.key === "Enter") onSubmit();
            }}
          />
        </Field>
      ))}
    </fieldset>
  );
}
