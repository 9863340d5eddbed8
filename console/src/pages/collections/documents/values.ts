/** Values of documents: their types, their text in a cell, and parsing of input. */

import {
  Binary,
  Bound,
  Decimal128,
  Double,
  Long,
  ObjectId,
  parseTyped,
  printTyped,
  RegularExpression,
  stringify,
  Timestamp,
} from "rillbase";

export type Kind =
  | "absent"
  | "null"
  | "string"
  | "number"
  | "boolean"
  | "date"
  | "id"
  | "special"
  | "array"
  | "object";

const NUMBERS = [Long, Double, Decimal128] as const;
const SPECIALS = [Binary, Bound, RegularExpression, Timestamp] as const;

export function kindOf(value: unknown): Kind {
  if (value === undefined) return "absent";
  if (value === null) return "null";
  if (typeof value === "string" || typeof value === "boolean") return typeof value as Kind;
  if (typeof value === "number" || NUMBERS.some((type) => value instanceof type)) return "number";
  if (value instanceof Date) return "date";
  if (value instanceof ObjectId) return "id";
  if (SPECIALS.some((type) => value instanceof type)) return "special";
  return Array.isArray(value) ? "array" : "object";
}

const MAX_CELL_CHARS = 400;

/** Returns a value in a line. */
export function textOf(value: unknown): string {
  switch (kindOf(value)) {
    case "absent":
      return "";
    case "string":
      return (value as string).slice(0, MAX_CELL_CHARS);
    case "date":
      return dateText(value as Date);
    case "array":
    case "object":
      return printTyped(value).slice(0, MAX_CELL_CHARS);
    default:
      return String(value);
  }
}

const MAX_MEMBERS = 8;

/** The members of an object or an array in a cell, at most a few of them. */
export interface Members {
  /** Names are empty in an array. */
  readonly shown: readonly (readonly [name: string, text: string])[];
  readonly omitted: number;
}

/** Returns the members of an object or an array, each in a short text without type markers. */
export function membersOf(value: object): Members {
  if (isPoint(value)) return { shown: [["Point", value.coordinates.join(", ")]], omitted: 0 };
  const isList = Array.isArray(value);
  const entries = Object.entries(value);
  return {
    shown: entries
      .slice(0, MAX_MEMBERS)
      .map(([name, member]) => [isList ? "" : name, briefText(member)] as const),
    omitted: Math.max(0, entries.length - MAX_MEMBERS),
  };
}

interface Point {
  readonly type: "Point";
  readonly coordinates: readonly unknown[];
}

/** Whether a value is a GeoJSON point and nothing else. */
function isPoint(value: object): value is Point {
  const { type, coordinates, ...others } = value as Partial<Point>;
  return type === "Point" && Array.isArray(coordinates) && Object.keys(others).length === 0;
}

const MAX_BRIEF_CHARS = 60;

function briefText(value: unknown): string {
  const kind = kindOf(value);
  if (kind !== "array" && kind !== "object") return textOf(value).slice(0, MAX_BRIEF_CHARS);
  const { shown, omitted } = membersOf(value as object);
  const texts = shown.map(([name, text]) => (name === "" ? text : `${name}: ${text}`));
  const text = [...texts, ...(omitted > 0 ? ["…"] : [])].join(", ");
  return (kind === "array" ? text : `{${text}}`).slice(0, MAX_BRIEF_CHARS);
}

/** How many characters a value takes in a cell. */
export function cellLength(value: unknown): number {
  const kind = kindOf(value);
  if (kind !== "array" && kind !== "object") return textOf(value).length;
  const { shown } = membersOf(value as object);
  return shown.reduce((sum, [name, text]) => sum + name.length + text.length + 3, 0);
}

export function dateText(date: Date): string {
  return Number.isNaN(date.getTime())
    ? "no date"
    : date
        .toISOString()
        .replace("T", " ")
        .replace(/\.000Z$|Z$/, "");
}

/**
 * Returns what an editor of a value begins with: strings as they are, numbers as their digits, the
 * rest as JSON.
 */
export function editableText(value: unknown): string {
  if (value === undefined) return "";
  if (typeof value === "string") return value;
  const isDigits = value instanceof Long || (value instanceof Decimal128 && isNumeral(value.text));
  return isDigits ? String(value) : printTyped(value);
}

const ISO_DATE = /^"?(\d{4}-\d{2}-\d{2}\S*(?: \S+)?)"?$/;

/**
 * Returns the value that was typed over another one. A string stays a string, a date may be typed
 * in ISO form, and a number keeps the type of the number before where that is exact; anything else
 * is read as Extended JSON, and what is not JSON is a string.
 */
export function typedValue(text: string, before: unknown): unknown {
  if (typeof before === "string") return text;
  const iso = before instanceof Date ? ISO_DATE.exec(text.trim()) : null;
  if (iso?.[1] !== undefined) {
    const date = new Date(iso[1]);
    if (!Number.isNaN(date.getTime())) return date;
  }
  const numeral = text.trim();
  if (isNumeral(numeral)) return typedNumber(numeral, before);
  try {
    return parseTyped(text);
  } catch {
    return text;
  }
}

const NUMERAL = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

function isNumeral(text: string): boolean {
  return NUMERAL.test(text);
}

/** Returns a number with the type of the one before it, or with its own if that would round it. */
function typedNumber(numeral: string, before: unknown): unknown {
  const typed = parseTyped(numeral);
  if (before instanceof Decimal128) return new Decimal128(numeral);
  if (typeof typed !== "number") return typed;
  if (!Number.isSafeInteger(typed)) return typed;
  if (isLong(before)) return new Long(typed);
  return isDouble(before) ? new Double(typed) : typed;
}

function isLong(value: unknown): boolean {
  return value instanceof Long || (Number.isInteger(value) && Math.abs(value as number) > 2 ** 31);
}

function isDouble(value: unknown): boolean {
  if (value instanceof Double) return true;
  return typeof value === "number" && (!Number.isInteger(value) || Object.is(value, -0));
}

/** Types that may replace each other without confirmation. */
const UNTYPED: readonly Kind[] = ["absent", "null"];

/** Returns how a typed value changes a cell's type, in a sentence; `null` if it does not. */
export function typeChange(before: unknown, typed: unknown): string | null {
  const [was, becomes] = [kindOf(before), kindOf(typed)];
  if (was === becomes || UNTYPED.includes(was)) return null;
  return `This is ${KIND_NAMES[was]}; the new value is ${KIND_NAMES[becomes]}.`;
}

const KIND_NAMES: Readonly<Record<Kind, string>> = {
  absent: "empty",
  null: "null",
  string: "text",
  number: "a number",
  boolean: "a boolean",
  date: "a date",
  id: "an ObjectId",
  special: "a special type",
  array: "an array",
  object: "an object",
};

/** Returns Extended JSON over several lines. */
export function prettyText(value: unknown): string {
  return printTyped(value, 2);
}

/** Returns a text that is equal for equal ids. */
export function keyOf(id: unknown): string {
  return typeof id === "string" ? id : printTyped(id);
}

/** Returns an id for people: an ObjectId by its digits alone. */
export function idText(id: unknown): string {
  return id instanceof ObjectId ? String(id) : keyOf(id);
}

/** Returns whether two values are equal, with their types. */
export function isSame(one: unknown, other: unknown): boolean {
  if (one === undefined || other === undefined) return one === other;
  return stringify(one) === stringify(other);
}

/** Returns the value at a path of names. */
export function valueAt(document: unknown, path: string): unknown {
  let value: unknown = document;
  for (const name of path.split(".")) {
    if (typeof value !== "object" || value === null) return undefined;
    value = (value as Record<string, unknown>)[name];
  }
  return value;
}

type Plain = Record<string, unknown>;

/**
 * Returns the update that makes one document of another. Only what differs is written, so what the
 * editor cannot show, such as whether a whole number is a double, stays as it is.
 */
export function updateBetween(
  before: Plain,
  after: Plain,
): { $set?: Plain; $unset?: Plain } | null {
  const set: Plain = {};
  const unset: Plain = {};
  compare(before, after, "", set, unset);
  if (Object.keys(set).length === 0 && Object.keys(unset).length === 0) return null;
  return {
    ...(Object.keys(set).length > 0 ? { $set: set } : {}),
    ...(Object.keys(unset).length > 0 ? { $unset: unset } : {}),
  };
}

function compare(before: Plain, after: Plain, prefix: string, set: Plain, unset: Plain): void {
  for (const name of Object.keys(before)) {
    if (!(name in after)) unset[prefix + name] = "";
  }
  for (const [name, value] of Object.entries(after)) {
    const old = before[name];
    if (name in before && stringify(old) === stringify(value)) continue;
    const canDescend = kindOf(old) === "object" && kindOf(value) === "object" && isPlainName(name);
    if (canDescend) compare(old as Plain, value as Plain, `${prefix}${name}.`, set, unset);
    else set[prefix + name] = value;
  }
}

function isPlainName(name: string): boolean {
  return name !== "" && !name.includes(".") && !name.startsWith("$");
}

/** An update takes apart names with dots; a document that has such names is replaced as a whole. */
export function hasAwkwardNames(document: Plain): boolean {
  return Object.entries(document).some(
    ([name, value]) =>
      !isPlainName(name) || (kindOf(value) === "object" && hasAwkwardNames(value as Plain)),
  );
}

/** A web address in data may become a link only if it is http or https. */
export function linkOf(value: unknown): string | null {
  if (typeof value !== "string" || !/^https?:\/\//i.test(value) || value.length > 2_000)
    return null;
  try {
    const { protocol, href } = new URL(value);
    return protocol === "http:" || protocol === "https:" ? href : null;
  } catch {
    return null;
  }
}
