/** A query as data. */

import { encode, stringify } from "../ejson/encode.js";
import type { Sort } from "../local/order.js";
import type { Plain } from "../local/paths.js";

export interface QuerySpec {
  readonly collection: string;
  readonly filter: Plain;
  readonly sort?: Sort;
  readonly projection?: Plain;
  readonly offset?: number;
  readonly limit?: number;
  /** Rows that stand for all documents with the same values, instead of documents. */
  readonly group?: Group;
  /** Other documents that are shown with each document. */
  readonly lookup?: readonly Lookup[];
}

/** Shows documents with the one, or the list of those, of a collection whose ids stand in a field. */
export interface Lookup {
  readonly from: string;
  readonly local: string;
  readonly as: string;
}

/** What is measured of the documents of a group. */
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
