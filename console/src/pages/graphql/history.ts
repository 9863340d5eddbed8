/** The latest operations, stored in this browser without their variables, which contain data. */

import { useCallback, useState } from "react";

const MAX_KEPT = 20;
const MAX_CHARS = 10_000;

function held(slot: string): readonly string[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(slot) ?? "[]");
    return Array.isArray(found) ? found.filter((each) => typeof each === "string") : [];
  } catch {
    // The stored value has another form: start with an empty history.
    return [];
  }
}

export function useHistory(slug: string) {
  const slot = `rillbase:graphql:${slug}`;
  const [operations, setOperations] = useState(() => held(slot));
  const add = useCallback(
    (operation: string) => {
      if (operation.length > MAX_CHARS) return;
      setOperations((before) => {
        const after = [operation, ...before.filter((each) => each !== operation)];
        const kept = after.slice(0, MAX_KEPT);
        localStorage.setItem(slot, JSON.stringify(kept));
        return kept;
      });
    },
    [slot],
  );
  const clear = useCallback(() => {
    localStorage.removeItem(slot);
    setOperations([]);
  }, [slot]);
  return { operations, add, clear };
}
