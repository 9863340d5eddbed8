/** What was run last, stored in this browser. */

import { useCallback, useState } from "react";

const MAX_KEPT = 20;
const MAX_CHARS = 10_000;

function stored(slot: string): readonly string[] {
  try {
    const entries: unknown = JSON.parse(localStorage.getItem(slot) ?? "[]");
    return Array.isArray(entries) ? entries.filter((each) => typeof each === "string") : [];
  } catch {
    // The stored value has another form: start with an empty history.
    return [];
  }
}

export function useHistory(slot: string) {
  const [entries, setEntries] = useState(() => stored(slot));
  const add = useCallback(
    (entry: string) => {
      if (entry.length > MAX_CHARS) return;
      setEntries((before) => {
        const after = [entry, ...before.filter((each) => each !== entry)];
        const latest = after.slice(0, MAX_KEPT);
        localStorage.setItem(slot, JSON.stringify(latest));
        return latest;
      });
    },
    [slot],
  );
  const clear = useCallback(() => {
    localStorage.removeItem(slot);
    setEntries([]);
  }, [slot]);
  return { entries, add, clear };
}
