/** The name of a declared object, which is part of its path and cannot be changed. */

import { Field } from "./Field";

const NAME = /^[a-z][a-z0-9_-]{0,62}$/;

export function isName(text: string): boolean {
  return NAME.test(text);
}

interface NameFieldProps {
  readonly value: string;
  readonly onChange: (name: string) => void;
}

export function NameField({ value, onChange }: NameFieldProps) {
  return (
    <Field
      label="Name"
      hint="A lower-case letter, then letters, digits, _ and -. It cannot be changed."
    >
      <input
        className="input mono"
        autoComplete="off"
        value={value}
        onChange={(event) => onChange(event.target.value)}
      />
    </Field>
  );
}
