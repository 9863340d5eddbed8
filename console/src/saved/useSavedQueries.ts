/** The tenant's saved queries, and how to change them. */

import { useQuery } from "@tanstack/react-query";
import { all, call } from "../api/control";
import { useChange } from "../api/list";
import { useTenant } from "../api/tenant";
import type { SavedChart, SavedQuery, SavedQueryKind } from "../api/types";

export const SAVED_QUERIES = "saved-queries";
const REFRESH_MS = 15_000;

export function useSavedQueries() {
  const { slug, api } = useTenant();
  return useQuery({
    queryKey: [slug, SAVED_QUERIES],
    queryFn: () => all<SavedQuery>(`${api}/${SAVED_QUERIES}`),
    select: (found) => [...found].sort((a, b) => a.name.localeCompare(b.name)),
  });
}

/** Returns a saved query as it was when the page was opened, which then holds its own changes. */
export function useSavedQuery(id: string) {
  const { slug, api } = useTenant();
  return useQuery({
    queryKey: [slug, "saved-query", id],
    queryFn: () => call<SavedQuery>(`${api}/${SAVED_QUERIES}/${encodeURIComponent(id)}`),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });
}

/** Returns the saved queries on the overview, in their order. */
export function usePins() {
  const { slug, api } = useTenant();
  return useQuery({
    queryKey: [slug, SAVED_QUERIES, "pinned"],
    queryFn: () => all<SavedQuery>(`${api}/${SAVED_QUERIES}`, { pinned: "true" }),
    select: (found) => [...found].sort((a, b) => (a.pin ?? 0) - (b.pin ?? 0)),
    refetchInterval: REFRESH_MS,
  });
}

export interface Draft {
  readonly kind: SavedQueryKind;
  readonly source: string;
  readonly query: Readonly<Record<string, unknown>>;
  readonly chart: SavedChart | null;
}

export type SavedQueryMembers = Partial<Omit<Draft, "kind">> & {
  readonly name?: string;
  readonly pin?: number | null;
};

/** A pin with this position is placed after the others. */
export const LAST_PIN = 11;

export function useSavedQueryChanges() {
  const change = useChange(SAVED_QUERIES);
  return {
    create: (body: Draft & SavedQueryMembers) =>
      change<SavedQuery>(SAVED_QUERIES, { method: "POST", body }),
    update: (id: string, body: SavedQueryMembers) =>
      change<SavedQuery>(`${SAVED_QUERIES}/${id}`, { method: "PATCH", body }),
    remove: (id: string) => change<null>(`${SAVED_QUERIES}/${id}`, { method: "DELETE" }),
  };
}

/** Returns where a saved query is opened, below the tenant's address. */
export function pathOf({ id, kind, source, query }: SavedQuery): string {
  const pages: Readonly<Record<SavedQueryKind, string>> = {
    collection: "/playground",
    aggregate: `/aggregates/${source}`,
    dataset: `/datasets/${source}/${"sql" in query ? "sql" : "query"}`,
  };
  return `${pages[kind]}?saved=${id}`;
}
