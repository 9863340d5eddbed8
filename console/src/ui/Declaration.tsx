/** A part of an object that is declared as JSON, with an editor that marks validation errors. */

import { type ReactNode, useState } from "react";
import { ServerError } from "rillbase";
import { failureOf } from "../api/failure";
import { JsonEditor, type ValidationError } from "./JsonEditor";
import { useToasts } from "./toasts";
import { ValidationErrors } from "./ValidationErrors";

interface DeclarationProps {
  readonly label: string;
  /** What the server calls it, which its pointers begin with. */
  readonly member: string;
  readonly value: unknown;
  readonly mayChange: boolean;
  readonly height?: string;
  readonly onSave: (value: unknown) => Promise<void>;
  /** Offers something that fills the editor; nothing is saved by it. */
  readonly children?: (propose: (value: unknown) => void) => ReactNode;
}

export function Declaration({
  label,
  member,
  value,
  mayChange,
  height = "360px",
  onSave,
  children,
}: DeclarationProps) {
  const base = JSON.stringify(value, null, 2);
  const [draft, setDraft] = useState<string | null>(null);
  const [validationErrors, setValidationErrors] = useState<readonly ValidationError[]>([]);
  const { say } = useToasts();
  const text = draft ?? base;
  const isChanged = draft !== null && draft !== base;
  async function save() {
    try {
      await onSave(text.trim() === "" ? null : JSON.parse(text));
      setDraft(null);
      setValidationErrors([]);
      say(`${label} saved.`);
    } catch (error) {
      setValidationErrors(validationErrorsOf(error, member));
    }
  }
  return (
    <>
      <JsonEditor
        label={label}
        value={text}
        height={height}
        validationErrors={validationErrors}
        {...(mayChange ? { onChange: setDraft, onSubmit: save } : {})}
      />
      <ValidationErrors validationErrors={validationErrors} />
      {(isChanged || children) && (
        <div className="section-head">
          <div>{children?.((proposed) => setDraft(JSON.stringify(proposed, null, 2)))}</div>
          {isChanged && (
            <div className="actions">
              <button type="button" className="button" onClick={() => setDraft(null)}>
                Discard
              </button>{" "}
              <button type="button" className="button main" onClick={save}>
                Save
              </button>
            </div>
          )}
        </div>
      )}
    </>
  );
}

/** Returns what is wrong where, the pointers beginning below a member. */
export function validationErrorsOf(error: unknown, member: string): ValidationError[] {
  if (error instanceof ServerError && error.places.length > 0) {
    return error.places.map(({ pointer, detail }) => ({
      pointer: pointer.startsWith(`/${member}`) ? pointer.slice(member.length + 1) : pointer,
      message: detail,
    }));
  }
  return [{ pointer: "", message: failureOf(error).summary }];
}
