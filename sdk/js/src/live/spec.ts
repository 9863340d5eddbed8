/** A query as data. */

import { encode, stringify } from "../ejson/encode.js";
import type { Sort } from "../local/order.js";
import type { Plain } from "../local/paths.js";

/** A query as data, as it is sent to the server. */
export interface QuerySpec {
  readonly collection: string;
  readonly filter: Plain;
  readonly sort?: Sort;
  readonly projection?: Plain;
  readonly offset?: number;
  readonly limit?: number;
  /** Returns one row for all documents with the same values, instead of documents. */
  readonly group?: Group;
  /** Other documents that are included with each document. */
  readonly lookup?: readonly Lookup[];
}

/**
 * Includes with each document those of another collection whose ids are in a field: one, or a list.
 */
export interface Lookup {
  readonly from: string;
  readonly local: string;
  readonly as: string;
}

/** A measure over the documents of a group. */
export type Measure =
  | { readonly op: "count" }
  | { readonly op: "sum" | "avg" | "min" | "max"; readonly field: string };

/** How documents are grouped: by the values of fields, with measures of each group. */
export interface Group {
  readonly by: readonly string[];
  readonly measures: Readonly<Record<string, Measure>>;
}

/** Returns the members of a query's message or body. */
export function specBody(spec: QuerySpec): Plain {
  return encode(spec) as Plain;
}

/** Returns the same text for equal queries. */
export function specKey(spec: QuerySpec): string {
  const { collection, filter, sort, projection, offset, limit, group, lookup } = spec;
  return stringify([collection, filter, sort, projection, offset, limit, group, lookup]);
}
