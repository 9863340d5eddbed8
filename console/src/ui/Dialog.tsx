/** The browser's dialogs: focus stays inside, Escape closes them unless input would be lost. */

import {
  type FormEvent,
  type KeyboardEvent,
  type ReactNode,
  useEffect,
  useRef,
  useState,
} from "react";
import { ErrorNotice } from "./ErrorNotice";

interface DialogProps {
  readonly title: string;
  readonly lead?: ReactNode;
  readonly wide?: boolean;
  /** A large dialog has room for a preview beside its form. */
  readonly size?: "large";
  /** What closing would lose. The first Escape shows it, the second one closes. */
  readonly unsaved?: string | null;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

export function Dialog(props: DialogProps) {
  const { title, lead, wide = false, size = "", unsaved, onClose, children } = props;
  const element = useRef<HTMLDialogElement>(null);
  const [isWarned, setWarned] = useState(false);
  const loss = unsaved ?? null;
  useEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  function guard(event: KeyboardEvent) {
    if (event.key !== "Escape") {
      setWarned(false);
    } else if (loss !== null && !isWarned) {
      event.preventDefault();
      setWarned(true);
    }
  }
  return (
    <dialog
      ref={element}
      className={`dialog ${wide ? "wide" : size}`}
      aria-label={title}
      onClose={onClose}
      onKeyDown={guard}
      onCancel={(event) => event.target === element.current || event.preventDefault()}
    >
      <div className="inner">
        <header>
          <h2>{title}</h2>
          {lead !== undefined && <p>{lead}</p>}
        </header>
        {children}
        {loss !== null && isWarned && (
          <p className="notice warn" role="alert">
            {loss} Press <kbd>Esc</kbd> again to close.
          </p>
        )}
      </div>
    </dialog>
  );
}

interface FormDialogProps extends DialogProps {
  /** The label of the button that performs the action. */
  readonly action: string;
  readonly danger?: boolean;
  readonly canSubmit?: boolean;
  /** Whether something was changed without typing, such as a row that was removed. */
  readonly isChanged?: boolean;
  /** Performs the action. The dialog closes afterwards, and shows a thrown error. */
  readonly onSubmit: () => Promise<unknown>;
}

/** A dialog that performs an action and shows its failure. */
export function FormDialog(props: FormDialogProps) {
  const {
    action,
    danger = false,
    canSubmit = true,
    isChanged = false,
    onSubmit,
    onClose,
    children,
    ...dialog
  } = props;
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const [isTyped, setTyped] = useState(false);
  async function submit(event: FormEvent) {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      await onSubmit();
      onClose();
    } catch (thrown) {
      setError(thrown);
      setBusy(false);
    }
  }
  return (
    <Dialog
      {...dialog}
      unsaved={isTyped || isChanged ? "What you entered is not saved." : null}
      onClose={onClose}
    >
      <form onSubmit={submit} onInput={() => setTyped(true)} className="form-inner">
        <div className="body">
          {children}
          {error !== null && <ErrorNotice error={error} />}
        </div>
        <footer>
          <button type="button" className="button" onClick={onClose}>
            Cancel
          </button>
          <button
            type="submit"
            className={danger ? "button main danger" : "button main"}
            disabled={isBusy || !canSubmit}
          >
            {action}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
