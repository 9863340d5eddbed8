/** JavaScript values as Extended JSON; the server accepts both of its forms. */

import { doubleText } from "./types.js";

const MAX_DEPTH = 200;
/** RFC 3339 has years of four digits; dates outside are written as milliseconds. */
const MAX_ISO_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/** Returns the text of a value. */
export function stringify(value: unknown): string {
  return JSON.stringify(encoded(value, 0));
}

/** Returns a value that consists only of JSON's types, without undefined members. */
export function encode(value: unknown): unknown {
  return encoded(value, 0);
}

function encoded(value: unknown, depth: number): unknown {
  if (depth > MAX_DEPTH) throw new TypeError("The value is nested too deep, or contains itself.");
  switch (typeof value) {
    case "string":
    case "boolean":
      return value;
    case "number":
      return number(value);
    case "bigint":
      return bigint(value);
    case "object":
      return value === null ? null : object(value, depth);
    default:
      throw new TypeError(`A ${typeof value} cannot be stored.`);
  }
}

function bigint(value: bigint): unknown {
  if (BigInt.asIntN(64, value) !== value) {
    throw new RangeError(`${value} does not fit into 64 bits; use a Decimal128.`);
  }
  return { $numberLong: value.toString() };
}

function number(value: number): unknown {
  const plain = Number.isFinite(value) && !Object.is(value, -0);
  return plain ? value : { $numberDouble: doubleText(value) };
}

function object(value: object, depth: number): unknown {
  if (Array.isArray(value)) {
    return value.map((item) => (item === undefined ? null : encoded(item, depth + 1)));
  }
  if (value instanceof Date) return date(value);
  if (value instanceof RegExp) return regularExpression(value);
  if (value instanceof Uint8Array) return bytes(value);
  if ("toJSON" in value && typeof value.toJSON === "function") return value.toJSON();
  if (value instanceof Map || value instanceof Set) {
    throw new TypeError("Maps and sets cannot be stored; use objects and arrays.");
  }
  return members(value, depth);
}

function members(value: object, depth: number): unknown {
  const pairs: [string, unknown][] = [];
  for (const [name, member] of Object.entries(value)) {
    if (member !== undefined) pairs.push([name, encoded(member, depth + 1)]);
  }
  return Object.fromEntries(pairs);
}

function date(value: Date): unknown {
  const ms = value.getTime();
  if (Number.isNaN(ms)) throw new TypeError("The date is not valid.");
  const readable = ms >= 0 && ms <= MAX_ISO_MS;
  return { $date: readable ? value.toISOString() : { $numberLong: String(ms) } };
}

function regularExpression(value: RegExp): unknown {
  const options = [...value.flags].filter((flag) => "ims".includes(flag)).sort();
  return { $regularExpression: { pattern: value.source, options: options.join("") } };
}

function bytes(value: Uint8Array): unknown {
  const text = Array.from(value, (byte) => String.fromCharCode(byte)).join("");
  return { $binary: { base64: btoa(text), subType: "00" } };
}
