/** What a form on a page does when it is sent, and why it could not. */

import { type FormEvent, useState } from "react";

export interface Submitting {
  /** Null while nothing went wrong. */
  readonly error: unknown;
  readonly submit: (event?: FormEvent) => Promise<void>;
}

/** Does it each time the form is sent; what is thrown is kept until the next time. */
export function useSubmit(act: () => Promise<unknown>): Submitting {
  const [error, setError] = useState<unknown>(null);
  async function submit(event?: FormEvent) {
    event?.preventDefault();
    setError(null);
    try {
      await act();
    } catch (thrown) {
      setError(thrown);
    }
  }
  return { error, submit };
}
