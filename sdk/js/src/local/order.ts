/**
 * The order of an answer: by the keys of its sort, then by `_id`.
 *
 * The times of documents, by which `$created` and `$updated` sort, are not part of answers. Only
 * that pending writes are later than what the server has sent is certain.
 */

import { compare, compareIds } from "./compare.js";
import { valuesAt } from "./paths.js";

export type Direction = 1 | -1;
export type Sort = readonly (readonly [string, Direction])[];

/** The pending writes that created and last changed a document, by number; 0: none. */
export interface PendingTimes {
  readonly created: number;
  readonly updated: number;
}

interface Placed {
  readonly id: unknown;
  readonly document: unknown;
  readonly times: PendingTimes | undefined;
}

/** Returns how two documents of an answer are ordered. */
export function orderBy(sort: Sort): (left: Placed, right: Placed) => number {
  return (left, right) => {
    for (const [path, direction] of sort) {
      const a = sortValue(left, path, direction);
      const found = compare(a, sortValue(right, path, direction)) * direction;
      if (found !== 0) return found;
    }
    return compareIds(left.id, right.id);
  };
}

/** For a list, the element that comes first in the direction of the sort counts. */
function sortValue({ document, times }: Placed, path: string, direction: Direction): unknown {
  if (path === "$created") return times?.created ?? 0;
  if (path === "$updated") return times?.updated ?? 0;
  const values = valuesAt(document, path).flatMap((value) => {
    return Array.isArray(value) && value.length > 0 ? (value as unknown[]) : [value];
  });
  if (values.length < 2) return values[0];
  return values.reduce((best, value) => (compare(value, best) * direction < 0 ? value : best));
}
