import { onScopeDispose, shallowRef } from "vue";

/** Return a ref of the query's latest snapshot. The subscription ends with the component. */
export function useLiveQuery(query) {
  const snapshot = shallowRef({ documents: [], state: "connecting", error: null });
  onScopeDispose(
    query.onSnapshot((next) => {
      snapshot.value = next;
    }),
  );
  return snapshot;
}
