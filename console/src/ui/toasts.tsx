/** Short messages about completed actions, with an undo button where possible. */

import { createContext, type ReactNode, useCallback, useContext, useMemo, useState } from "react";
import { failureOf } from "../api/failure";
import { Icon } from "./Icon";

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly isBad: boolean;
  readonly undo: (() => Promise<unknown>) | undefined;
}

interface Toasts {
  /** Says that something was done; `undo` takes it back. */
  readonly showMessage: (text: string, undo?: () => Promise<unknown>) => void;
  /** Says that something failed. */
  readonly fail: (error: unknown) => void;
}

const SHOWN_MS = 5_000;
const SHOWN_WITH_UNDO_MS = 12_000;
const Context = createContext<Toasts | null>(null);
let lastId = 0;

export function useToasts(): Toasts {
  const toasts = useContext(Context);
  if (toasts === null) throw new Error("Toasts are provided by the application.");
  return toasts;
}

export function ToastProvider({ children }: { readonly children: ReactNode }) {
  const [shown, setShown] = useState<readonly Toast[]>([]);
  const drop = useCallback((id: number) => {
    setShown((toasts) => toasts.filter((toast) => toast.id !== id));
  }, []);
  const show = useCallback(
    (text: string, isBad: boolean, undo?: () => Promise<unknown>) => {
      lastId += 1;
      const id = lastId;
      setShown((toasts) => [...toasts.slice(-3), { id, text, isBad, undo }]);
      setTimeout(() => drop(id), undo || isBad ? SHOWN_WITH_UNDO_MS : SHOWN_MS);
    },
    [drop],
  );
  const toasts = useMemo<Toasts>(
    () => ({
      showMessage: (text, undo) => show(text, false, undo),
      fail: (error) => show(failureOf(error).summary, true),
    }),
    [show],
  );
  async function undo(toast: Toast) {
    drop(toast.id);
    try {
      await toast.undo?.();
    } catch (error) {
      toasts.fail(error);
    }
  }
  return (
    <Context value={toasts}>
      {children}
      <div className="toasts" role="status" aria-live="polite">
        {shown.map((toast) => (
          <div key={toast.id} className={toast.isBad ? "toast bad" : "toast"}>
            <span className="text">{toast.text}</span>
            {toast.undo && (
              <button type="button" onClick={() => undo(toast)}>
                Undo
              </button>
            )}
            <button type="button" aria-label="Dismiss" onClick={() => drop(toast.id)}>
              <Icon name="close" size={12} />
            </button>
          </div>
        ))}
      </div>
    </Context>
  );
}
