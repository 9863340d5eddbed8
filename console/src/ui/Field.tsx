/** A labelled input. */

import type { ReactNode } from "react";

interface FieldProps {
  readonly label: string;
  readonly hint?: ReactNode;
  readonly wrong?: string | undefined;
  readonly children: ReactNode;
}

export function Field({ label, hint, wrong, children }: FieldProps) {
  return (
    // biome-ignore lint/a11y/noLabelWithoutControl: the control is the child.
    <label className="field">
      <span className="label">{label}</span>
      {children}
      {hint !== undefined && <span className="hint">{hint}</span>}
      {wrong !== undefined && wrong !== "" && <span className="wrong">{wrong}</span>}
    </label>
  );
}

interface SegmentsProps<T extends string> {
  readonly label: string;
  readonly options: readonly (readonly [T, string])[];
  readonly value: T;
  readonly onChange: (value: T) => void;
}

/** A choice of few, all of them in view. */
export function Segments<T extends string>({ label, options, value, onChange }: SegmentsProps<T>) {
  return (
    <fieldset className="segments" aria-label={label}>
      {options.map(([option, text]) => (
        <button
          key={option}
          type="button"
          aria-pressed={option === value}
          onClick={() => onChange(option)}
        >
          {text}
        </button>
      ))}
    </fieldset>
  );
}

interface SelectProps<T extends string> {
  /** Needed outside a field. */
  readonly label?: string;
  readonly className?: string;
  readonly options: readonly (readonly [value: T, text: string])[];
  readonly value: T;
  readonly isDisabled?: boolean;
  readonly onChange: (value: T) => void;
}

/** A choice of many. */
export function Select<T extends string>(props: SelectProps<T>) {
  const { label, className = "", options, value, isDisabled = false, onChange } = props;
  return (
    <select
      className={`select ${className}`}
      aria-label={label}
      disabled={isDisabled}
      value={value}
      onChange={({ target }) => onChange(target.value as T)}
    >
      {options.map(([option, text]) => (
        <option key={option} value={option}>
          {text}
        </option>
      ))}
    </select>
  );
}

/** Options whose texts are their values. */
export function sameText<T extends string>(values: readonly T[]): (readonly [T, T])[] {
  return values.map((value) => [value, value]);
}
