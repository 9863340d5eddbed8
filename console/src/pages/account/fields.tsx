/**
 * Fields for the user's own data. Browsers and password managers recognise them by `autoComplete`.
 */

import { Field } from "../../ui/Field";

interface TextProps {
  readonly value: string;
  readonly onChange: (text: string) => void;
}

export function NameInput({ value, onChange }: TextProps) {
  return (
    <Field label="Your name">
      <input
        className="input"
        autoComplete="name"
        value={value}
        onChange={(event) => onChange(event.target.value)}
      />
    </Field>
  );
}

export function EmailInput({ value, onChange }: TextProps) {
  return (
    <Field label="Email address">
      <input
        className="input"
        type="email"
        name="email"
        autoComplete="username"
        required
        value={value}
        onChange={(event) => onChange(event.target.value)}
      />
    </Field>
  );
}

export function PasswordInput({
  label = "Password",
  value,
  onChange,
}: TextProps & { readonly label?: string }) {
  return (
    <Field label={label}>
      <input
        className="input"
        type="password"
        name="password"
        autoComplete="current-password"
        required
        value={value}
        onChange={(event) => onChange(event.target.value)}
      />
    </Field>
  );
}

export function NewPasswordInput({
  label = "Password",
  value,
  onChange,
}: TextProps & { readonly label?: string }) {
  return (
    <Field label={label} hint="At least ten characters.">
      <input
        className="input"
        type="password"
        autoComplete="new-password"
        minLength={10}
        required
        value={value}
        onChange={(event) => onChange(event.target.value)}
      />
    </Field>
  );
}
