/** Extended JSON, relaxed or canonical, as JavaScript values. */

import { withExactNumbers } from "./literals.js";
import {
  Binary,
  Bound,
  Decimal128,
  Double,
  Long,
  ObjectId,
  RegularExpression,
  Timestamp,
} from "./types.js";

type Plain = Record<string, unknown>;

type Readers = Readonly<Record<string, (value: unknown) => unknown>>;

/** Decodes an object with one member of this name; undefined: it is an ordinary object. */
const READERS: Readers = {
  $oid: (value) => ifText(value, (text) => new ObjectId(text)),
  $numberDecimal: (value) => ifText(value, (text) => new Decimal128(text)),
  $numberLong: (value) => ifText(value, long),
  $numberInt: (value) => ifText(value, int),
  $numberDouble: (value) => ifText(value, double),
  $symbol: (value) => ifText(value, String),
  $date: date,
  $binary: binary,
  $timestamp: (value) => ifObject(value, ({ t, i }) => new Timestamp(Number(t), Number(i))),
  $regularExpression: (value) =>
    ifObject(value, ({ pattern, options }) => {
      return new RegularExpression(String(pattern), String(options ?? ""));
    }),
  $minKey: () => Bound.MIN,
  $maxKey: () => Bound.MAX,
};

/** Also keeps the types of numbers that would be stored with another type if they were plain. */
const TYPED_READERS: Readers = {
  ...READERS,
  $numberLong: (value) => ifText(value, typedLong),
  $numberDouble: (value) => ifText(value, typedDouble),
  // A string would be stored as a string, so a symbol stays as it is written.
  $symbol: () => undefined,
};

/** Decodes a text. Whole numbers beyond 2^53 become `Long`. */
export function parse(text: string): unknown {
  return decode(withExactNumbers(text, false));
}

/**
 * Decodes a text so that every number is written back with its type: `3.0` becomes a `Double`, and a
 * small `$numberLong` a `Long`.
 */
export function parseTyped(text: string): unknown {
  return decodeTyped(withExactNumbers(text, true));
}

/** Decodes the result of `JSON.parse`, in place if possible. */
export function decode(value: unknown): unknown {
  return decoded(value, READERS);
}

/** Decodes the result of `JSON.parse` as `parseTyped` does. */
export function decodeTyped(value: unknown): unknown {
  return decoded(value, TYPED_READERS);
}

function decoded(value: unknown, readers: Readers): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) {
    for (let place = 0; place < value.length; place += 1) {
      value[place] = decoded(value[place], readers);
    }
    return value;
  }
  return wrapped(value as Plain, readers) ?? members(value as Plain, readers);
}

function wrapped(value: Plain, readers: Readers): unknown {
  const names = Object.keys(value);
  const [name] = names;
  if (names.length !== 1 || name === undefined || !name.startsWith("$")) return undefined;
  return Object.hasOwn(readers, name) ? readers[name]?.(value[name]) : undefined;
}

function members(value: Plain, readers: Readers): Plain {
  for (const [name, member] of Object.entries(value)) {
    if (typeof member !== "object" || member === null) continue;
    // An assignment to `__proto__` would change what the object inherits.
    Object.defineProperty(value, name, {
      value: decoded(member, readers),
      configurable: true,
      enumerable: true,
      writable: true,
    });
  }
  return value;
}

function ifText(value: unknown, read: (text: string) => unknown): unknown {
  return typeof value === "string" ? read(value) : undefined;
}

function ifObject(value: unknown, read: (object: Plain) => unknown): unknown {
  return typeof value === "object" && value !== null ? read(value as Plain) : undefined;
}

/** A number where that is exact, as in relaxed form; a `Long` where it is not. */
function long(text: string): number | Long {
  const plain = Number(text);
  return WHOLE.test(text) && Number.isSafeInteger(plain) ? plain : new Long(text);
}

function typedLong(text: string): number | Long {
  const parsed = long(text);
  // The server stores a plain number of up to 32 bits as an int.
  return typeof parsed === "number" && parsed === (parsed | 0) ? new Long(text) : parsed;
}

const WHOLE = /^-?\d+$/;

function int(text: string): number {
  const parsed = Number(text);
  if (!WHOLE.test(text) || parsed !== (parsed | 0)) {
    throw new SyntaxError(`${text} is not an integer of 32 bits.`);
  }
  return parsed + 0;
}

const DOUBLE = /^(?:NaN|[+-]?Infinity|[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)$/;

function double(text: string): number {
  if (!DOUBLE.test(text)) throw new SyntaxError(`${text} is not a number.`);
  return Number(text);
}

function typedDouble(text: string): number | Double {
  const parsed = double(text);
  return isWrittenAsInteger(parsed) ? new Double(parsed) : parsed;
}

/** Whether JSON would write a double like an integer of 64 bits; −0 keeps its type. */
function isWrittenAsInteger(value: number): boolean {
  return Number.isInteger(value) && !Object.is(value, -0) && Math.abs(value) <= 2 ** 63;
}

function date(value: unknown): unknown {
  if (typeof value === "string") return new Date(value);
  if (typeof value === "number") return ifValid(new Date(value));
  return ifObject(value, ({ $numberLong }) => ifValid(new Date(Number($numberLong))));
}

/** A date that JavaScript cannot represent stays as it is written. */
function ifValid(date: Date): Date | undefined {
  return Number.isNaN(date.getTime()) ? undefined : date;
}

function binary(value: unknown): unknown {
  return ifObject(value, ({ base64, subType }) => {
    return Binary.fromBase64(String(base64), Number.parseInt(String(subType), 16));
  });
}
