import { readable } from "svelte/store";

/** Return a store of the query's latest snapshot. It is subscribed while a component uses it. */
export function liveQuery(query) {
  return readable({ documents: [], state: "connecting", error: null }, (set) =>
    query.onSnapshot(set),
  );
}
