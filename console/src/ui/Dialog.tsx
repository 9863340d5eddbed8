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
  /** What closing would lose. The first Escape shows it, the second one closes. */
  readonly unsaved?: string | null;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

export function Dialog({ title, lead, wide = false, unsaved, onClose, children }: DialogProps) {
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
      className={wide ? "dialog wide" : "dialog"}
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
  /** What the button that does it says. */
  readonly action: string;
  readonly danger?: boolean;
  readonly canSubmit?: boolean;
  /** Does it. The dialog closes when it is done, and shows what is thrown. */
  readonly onSubmit: () => Promise<unknown>;
}

/** A dialog that does something and says why it could not. */
export function FormDialog(props: FormDialogProps) {
  const {
    action,
    danger = false,
    canSubmit = true,
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
      unsaved={isTyped ? "What you entered is not saved." : null}
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
