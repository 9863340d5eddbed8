/** The order of an answer: by the keys of its sort, then by `_id`. */

import { compare, compareIds } from "./compare.js";
import { valuesAt } from "./paths.js";

export type Direction = 1 | -1;
export type Sort = readonly (readonly [string, Direction])[];

interface Placed {
  readonly id: unknown;
  readonly document: unknown;
}

/** Returns how two documents of an answer are ordered. */
export function orderBy(sort: Sort): (left: Placed, right: Placed) => number {
  return (left, right) => {
    for (const [path, direction] of sort) {
      const a = sortValue(left.document, path, direction);
      const found = compare(a, sortValue(right.document, path, direction)) * direction;
      if (found !== 0) return found;
    }
    return compareIds(left.id, right.id);
  };
}

/** For a list, the element that comes first in the direction of the sort counts. */
function sortValue(document: unknown, path: string, direction: Direction): unknown {
  const values = valuesAt(document, path).flatMap((value) => {
    return Array.isArray(value) && value.length > 0 ? (value as unknown[]) : [value];
  });
  if (values.length < 2) return values[0];
  return values.reduce((best, value) => (compare(value, best) * direction < 0 ? value : best));
}
