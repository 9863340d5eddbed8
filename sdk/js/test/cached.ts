/** The common part of `graphql-cache.ts` for both clients. */

import type { HeldRows } from "./graphql-rows.js";

export interface Cached {
  /** Calls the listener with the page's documents, and whenever the cache has others. */
  readonly watch: (listener: (documents: readonly unknown[]) => void) => void;
  readonly change: (key: string, n: number) => Promise<void>;
  /** Follows the live query until the connection is lost, and then throws. */
  readonly follow: (held: HeldRows) => Promise<void>;
}

export interface Setting {
  readonly url: string;
  readonly token: string;
  readonly collection: string;
  /** Counts calls. */
  readonly fetch: typeof fetch;
}

export const PAGE = `
query Page($collection: String!) {
  documents(collection: $collection, sort: [["n", 1]], first: 10) {
    nodes { id key version document }
  }
}`;
export const CHANGE = `
mutation Change($collection: String!, $key: JSON!, $update: JSON!) {
  updateDocument(collection: $collection, key: $key, update: $update) { id key version document }
}`;
