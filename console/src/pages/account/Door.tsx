/** The card around the pages that need no session. */

import { type FormEvent, type ReactNode, useEffect, useState } from "react";
import { ErrorNotice } from "../../ui/ErrorNotice";
import { Mark } from "../../ui/Icon";
import "./door.css";

interface DoorProps {
  readonly title: string;
  readonly lead?: ReactNode;
  readonly children?: ReactNode;
}

export function Door({ title, lead, children }: DoorProps) {
  useEffect(() => {
    document.title = `${title} · Rillbase`;
  }, [title]);
  return (
    <main className="door">
      <div className="card">
        <div className="brand">
          <Mark size={26} /> Rillbase
        </div>
        <div>
          <h1>{title}</h1>
          {lead !== undefined && <p className="soft">{lead}</p>}
        </div>
        {children}
      </div>
    </main>
  );
}

interface DoorFormProps {
  readonly action: string;
  /** Whether the action is the main one of the page. */
  readonly isMain?: boolean;
  readonly onSubmit: () => Promise<unknown>;
  readonly children: ReactNode;
}

export function DoorForm({ action, isMain = true, onSubmit, children }: DoorFormProps) {
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  async function submit(event: FormEvent) {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      await onSubmit();
    } catch (thrown) {
      setError(thrown);
    } finally {
      setBusy(false);
    }
  }
  return (
    <form onSubmit={submit}>
      {children}
      {error !== null && <ErrorNotice error={error} />}
      <button type="submit" className={isMain ? "button main" : "button"} disabled={isBusy}>
        {action}
      </button>
    </form>
  );
}
