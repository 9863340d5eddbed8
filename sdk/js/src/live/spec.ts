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
}

/** Returns the members of a query's message or body. */
export function specBody(spec: QuerySpec): Plain {
  return encode(spec) as Plain;
}

/** Returns a text that is equal for equal queries. */
export function specKey(spec: QuerySpec): string {
  const { collection, filter, sort, projection, offset, limit } = spec;
  return stringify([collection, filter, sort, projection, offset, limit]);
}
