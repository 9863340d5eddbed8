/** The end of a form: its error, and the button that submits it. */

import { ErrorNotice } from "./ErrorNotice";

interface FormFootProps {
  readonly error: unknown;
  /** What the button says. */
  readonly action: string;
  readonly canSubmit?: boolean;
  /** Whether this is the main action of the page. */
  readonly isMain?: boolean;
}

export function FormFoot({ error, action, canSubmit = true, isMain = true }: FormFootProps) {
  return (
    <>
      {error !== null && <ErrorNotice error={error} />}
      <div>
        <button type="submit" className={isMain ? "button main" : "button"} disabled={!canSubmit}>
          {action}
        </button>
      </div>
    </>
  );
}
