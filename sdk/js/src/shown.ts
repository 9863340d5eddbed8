/** The shape of a query's rows as a type, as far as it follows from names. */

import type { Decimal128, Long } from "./ejson/types.js";
import type { Group, Measure } from "./live/spec.js";
import type { Document } from "./types.js";

/** A looked-up document, a list of them if a field refers to several, or null. */
export type LookedUp = Document | readonly Document[] | null;

/** Documents with a lookup under a name, which replaces a field of that name. */
export type WithLookup<T, A extends string> = {
  readonly [K in keyof T as K extends A ? never : K]: T[K];
} & { readonly [K in A]: LookedUp };

/** The row of a group: the values that its documents share, and their measures. */
export type GroupRow<T, B extends string, M extends Group["measures"]> = {
  readonly [F in B as FirstName<F>]: F extends keyof T ? T[F] | null : unknown;
} & { readonly [N in keyof M]: Measured<T, M[N]> };

/** A dotted path is nested in the row: `at.day` below `at`. */
type FirstName<F extends string> = F extends `${infer First}.${string}` ? First : F;

type Measured<T, M extends Measure> = M extends { readonly op: "count" }
  ? number
  : M extends { readonly op: "sum" }
    ? number | Long | Decimal128
    : M extends { readonly op: "avg" }
      ? number | Decimal128 | null
      : M extends { readonly field: infer F extends keyof T }
        ? T[F] | null
        : unknown;
