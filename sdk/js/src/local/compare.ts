/** MongoDB's order of values, for the types that a client handles. */

import {
  Binary,
  Bound,
  Decimal128,
  Double,
  Long,
  ObjectId,
  RegularExpression,
  Timestamp,
} from "../ejson/types.js";

/** The kinds of values, in the order in which they sort. */
enum Kind {
  Min,
  Null,
  Number,
  String,
  Object,
  Array,
  Binary,
  ObjectId,
  Boolean,
  Date,
  Timestamp,
  Regex,
  Max,
}

/** Returns a negative number, 0 or a positive one. Defined for all values that can be stored. */
export function compare(left: unknown, right: unknown): number {
  const kind = kindOf(left);
  const difference = kind - kindOf(right);
  return difference !== 0 ? difference : compareSame(kind, left, right);
}

/** Compares ids, the tie-breaker of every sort. */
export const compareIds = compare;

export function isSameKind(left: unknown, right: unknown): boolean {
  return kindOf(left) === kindOf(right);
}

/** Returns a number's value, or undefined for other kinds. Decimals lose digits beyond a double. */
export function numberOf(value: unknown): number | undefined {
  if (typeof value === "number") return value;
  if (typeof value === "bigint") return Number(value);
  if (value instanceof Long) return Number(value.value);
  if (value instanceof Double) return value.value;
  return value instanceof Decimal128 ? Number(value.text) : undefined;
}

function kindOf(value: unknown): Kind {
  switch (typeof value) {
    case "undefined":
      return Kind.Null;
    case "number":
    case "bigint":
      return Kind.Number;
    case "string":
      return Kind.String;
    case "boolean":
      return Kind.Boolean;
    default:
      return value === null ? Kind.Null : kindOfObject(value as object);
  }
}

function kindOfObject(value: object): Kind {
  if (Array.isArray(value)) return Kind.Array;
  if (value instanceof Date) return Kind.Date;
  if (value instanceof ObjectId) return Kind.ObjectId;
  if (value instanceof Binary || value instanceof Uint8Array) return Kind.Binary;
  if (value instanceof Timestamp) return Kind.Timestamp;
  if (value instanceof RegularExpression || value instanceof RegExp) return Kind.Regex;
  if (value instanceof Bound) return value === Bound.MIN ? Kind.Min : Kind.Max;
  return numberOf(value) === undefined ? Kind.Object : Kind.Number;
}

function compareSame(kind: Kind, left: unknown, right: unknown): number {
  switch (kind) {
    case Kind.Number:
      return compareNumbers(left, right);
    case Kind.String:
      return compareTexts(left as string, right as string);
    case Kind.Boolean:
      return Number(left) - Number(right);
    case Kind.Date:
      return (left as Date).getTime() - (right as Date).getTime();
    case Kind.Timestamp:
      return compareTimestamps(left as Timestamp, right as Timestamp);
    case Kind.Array:
      return compareLists(left as unknown[], right as unknown[]);
    case Kind.Object:
      return compareObjects(left as object, right as object);
    case Kind.Binary:
      return compareBinaries(left as Binary | Uint8Array, right as Binary | Uint8Array);
    case Kind.ObjectId:
    case Kind.Regex:
      return compareTexts(String(left), String(right));
    default:
      return 0;
  }
}

function compareNumbers(left: unknown, right: unknown): number {
  if (left instanceof Long && right instanceof Long) {
    return left.value < right.value ? -1 : Number(left.value > right.value);
  }
  const a = numberOf(left) ?? Number.NaN;
  const b = numberOf(right) ?? Number.NaN;
  // NaN sorts before every other number, and equals itself.
  if (Number.isNaN(a) || Number.isNaN(b)) return Number(Number.isNaN(b)) - Number(Number.isNaN(a));
  return a < b ? -1 : Number(a > b);
}

/** By code points, as UTF-8 sorts; JavaScript's own order is by UTF-16 units. */
function compareTexts(left: string, right: string): number {
  const length = Math.min(left.length, right.length);
  for (let index = 0; index < length; index += 1) {
    const a = left.charCodeAt(index);
    const b = right.charCodeAt(index);
    if (a !== b) return isSurrogate(a) === isSurrogate(b) ? a - b : isSurrogate(a) ? 1 : -1;
  }
  return left.length - right.length;
}

/** Surrogates stand for code points above all others. */
function isSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdfff;
}

function compareTimestamps(left: Timestamp, right: Timestamp): number {
  return left.seconds - right.seconds || left.ordinal - right.ordinal;
}

function compareLists(left: readonly unknown[], right: readonly unknown[]): number {
  const length = Math.min(left.length, right.length);
  for (let index = 0; index < length; index += 1) {
    const order = compare(left[index], right[index]);
    if (order !== 0) return order;
  }
  return left.length - right.length;
}

function compareObjects(left: object, right: object): number {
  const a = Object.entries(left);
  const b = Object.entries(right);
  const length = Math.min(a.length, b.length);
  for (let index = 0; index < length; index += 1) {
    const [leftName = "", leftValue] = a[index] ?? [];
    const [rightName = "", rightValue] = b[index] ?? [];
    const order =
      kindOf(leftValue) - kindOf(rightValue) ||
      compareTexts(leftName, rightName) ||
      compare(leftValue, rightValue);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

function compareBinaries(left: Binary | Uint8Array, right: Binary | Uint8Array): number {
  const [a, b] = [bytesOf(left), bytesOf(right)];
  const subType = (value: unknown) => (value instanceof Binary ? value.subType : 0);
  return (
    a.length - b.length ||
    subType(left) - subType(right) ||
    compareLists(Array.from(a), Array.from(b))
  );
}

function bytesOf(value: Binary | Uint8Array): Uint8Array {
  return value instanceof Binary ? value.bytes : value;
}
