/** Extended JSON, relaxed or canonical, as JavaScript values. */

import {
  Binary,
  Bound,
  Decimal128,
  Long,
  ObjectId,
  RegularExpression,
  Timestamp,
} from "./types.js";

type Plain = Record<string, unknown>;

/** Decodes an object with one member of this name; undefined: it is an ordinary object. */
const READERS: Record<string, (value: unknown) => unknown> = {
  $oid: (value) => ifText(value, (text) => new ObjectId(text)),
  $numberDecimal: (value) => ifText(value, (text) => new Decimal128(text)),
  $numberLong: (value) => ifText(value, long),
  $numberInt: (value) => ifText(value, Number),
  $numberDouble: (value) => ifText(value, Number),
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

/** Decodes a text. */
export function parse(text: string): unknown {
  return decode(JSON.parse(text));
}

/** Decodes the result of `JSON.parse`, in place if possible. */
export function decode(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) {
    for (let place = 0; place < value.length; place += 1) value[place] = decode(value[place]);
    return value;
  }
  return wrapped(value as Plain) ?? members(value as Plain);
}

function wrapped(value: Plain): unknown {
  const names = Object.keys(value);
  const [name] = names;
  if (names.length !== 1 || name === undefined || !name.startsWith("$")) return undefined;
  return Object.hasOwn(READERS, name) ? READERS[name]?.(value[name]) : undefined;
}

function members(value: Plain): Plain {
  for (const [name, member] of Object.entries(value)) {
    if (typeof member !== "object" || member === null) continue;
    // An assignment to `__proto__` would change what the object inherits.
    Object.defineProperty(value, name, {
      value: decode(member),
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
  return Number.isSafeInteger(plain) ? plain : new Long(text);
}

function date(value: unknown): unknown {
  if (typeof value === "string") return new Date(value);
  return ifObject(value, ({ $numberLong }) => new Date(Number($numberLong)));
}

function binary(value: unknown): unknown {
  return ifObject(value, ({ base64, subType }) => {
    return Binary.fromBase64(String(base64), Number.parseInt(String(subType), 16));
  });
}
