/** The submission of a form, and its error. */

import { type FormEvent, useState } from "react";

export interface Submitting {
  /** Null as long as there is no error. */
  readonly error: unknown;
  readonly isPending: boolean;
  readonly submit: (event?: FormEvent) => Promise<void>;
}

/** Runs it each time the form is submitted; its error is kept until the next time. */
export function useSubmit(act: () => Promise<unknown>): Submitting {
  const [error, setError] = useState<unknown>(null);
  const [isPending, setPending] = useState(false);
  async function submit(event?: FormEvent) {
    event?.preventDefault();
    setError(null);
    setPending(true);
    try {
      await act();
    } catch (thrown) {
      setError(thrown);
    } finally {
      setPending(false);
    }
  }
  return { error, isPending, submit };
}
