/** A dataset as the control plane describes it, and the console's names for its stages. */

import type { Stage } from "rillbase";

export interface Table {
  readonly columns: Readonly<Record<string, string>>;
  readonly key: readonly string[];
  readonly views: Readonly<Record<string, View>>;
}

export interface View {
  readonly key: readonly string[];
  readonly columns: readonly string[];
}

/** A type, or the types of the parts. */
export type IdKey = string | Readonly<Record<string, string>>;

export interface Dataset {
  readonly id: string;
  readonly name: string;
  readonly tables: Readonly<Record<string, Table>>;
  readonly id_keys: Readonly<Record<string, IdKey>>;
  readonly retention_s: number;
  /** The newest state, which is the number of uploads. */
  readonly state: number;
  readonly stored_bytes: number;
  readonly version: number;
  readonly created_at: string;
}

/** In the order in which rows go through them. */
export const STAGES: readonly {
  readonly id: Stage;
  readonly title: string;
  readonly is: string;
}[] = [
  { id: "unsorted", title: "Unsorted", is: "as uploaded" },
  { id: "sorted", title: "Sorted", is: "in key order" },
  { id: "merged", title: "Merged", is: "in larger sorted runs" },
  { id: "authority", title: "Authority", is: "one row per key" },
];

/** Where keys are stored as ids. Until rows are sorted, queries read them as they came. */
export const REMAPPED = { id: "remapped", title: "Remapped", is: "keys replaced by ids" } as const;

/** The freshness levels of a query. */
export const FRESHNESS: readonly (readonly [string, string])[] = [
  ["0", "all uploads"],
  ["5", "at most 5 s old"],
  ["15", "at most 15 s old"],
  ["60", "at most 60 s old"],
  ["any", "merged rows only"],
];

export function freshnessOf(text: string): number | "any" {
  return text === "any" ? text : Number(text);
}
