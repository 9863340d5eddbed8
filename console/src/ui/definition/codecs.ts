/** How values are typed into the fields of a form. */

import {
  formatJson,
  isArray,
  isNumber,
  isObject,
  type Json,
  type JsonObject,
  parseJson,
} from "./exactJson";

export type Reading<T> = { readonly value: T } | { readonly wrong: string };

export interface Codec<T> {
  readonly show: (value: T) => string;
  readonly read: (text: string) => Reading<T>;
}

export const TEXT: Codec<string> = {
  show: (value) => value,
  read: (value) => ({ value }),
};

/** An empty text is no value. */
export const OPTIONAL_TEXT: Codec<Json | undefined> = {
  show: (value) => (typeof value === "string" ? value : ""),
  read: (text) => ({ value: text === "" ? undefined : text }),
};

/** A number, as it is typed. An empty text is no value. */
export const OPTIONAL_NUMBER: Codec<Json | undefined> = {
  show: (value) => (isNumber(value) ? JSON.stringify(value) : ""),
  read(text) {
    if (text.trim() === "") return { value: undefined };
    const value = parsed(text);
    return isNumber(value) ? { value } : { wrong: "This is not a number." };
  },
};

/** Values one per line. What is not JSON is a string, so most strings need no quotes. */
export const VALUE_LINES: Codec<Json | undefined> = {
  show: (value) => (Array.isArray(value) ? value.map(lineOf).join("\n") : ""),
  read(text) {
    const lines = text.split("\n").filter((line) => line.trim() !== "");
    if (lines.length === 0) return { value: undefined };
    return { value: lines.map(lineValue) };
  },
};

function lineValue(line: string): Json {
  const value = parsed(line);
  return value === undefined ? line.trim() : value;
}

function lineOf(value: Json): string {
  const isPlain =
    typeof value === "string" &&
    parsed(value) === undefined &&
    value === value.trim() &&
    value !== "" &&
    !value.includes("\n");
  return isPlain ? value : JSON.stringify(value);
}

/** An object as JSON. */
export const OBJECT: Codec<JsonObject> = {
  show: formatJson,
  read(text) {
    const value = parsed(text);
    return isObject(value) ? { value } : { wrong: "This is not a JSON object." };
  },
};

/** Names separated by commas. */
export const NAMES: Codec<readonly string[]> = {
  show: (names) => names.join(", "),
  read: (text) => ({
    value: text
      .split(",")
      .map((name) => name.trim())
      .filter(Boolean),
  }),
};

const SPANS_S = { d: 86_400, h: 3_600, m: 60, s: 1 } as const;

/** Seconds, typed as a span such as 90m. */
export const SECONDS: Codec<Json | undefined> = {
  show(value) {
    if (typeof value !== "number") return isNumber(value) ? JSON.stringify(value) : "";
    const units = Object.entries(SPANS_S);
    const [unit, length] = units.find(([, seconds]) => value % seconds === 0) ?? ["s", 1];
    return `${value / length}${unit}`;
  },
  read: (text) => readQuantity(text, SPANS_S, "s", "A number and s, m, h or d, such as 90m."),
};

const SIZES = { MiB: 1_048_576, KiB: 1_024, B: 1 } as const;

/** Bytes, typed as a size such as 64 KiB. */
export const BYTES: Codec<Json | undefined> = {
  show(value) {
    if (typeof value !== "number") return isNumber(value) ? JSON.stringify(value) : "";
    const units = Object.entries(SIZES);
    const [unit, length] = units.find(([, size]) => value !== 0 && value % size === 0) ?? ["B", 1];
    return `${value / length} ${unit}`;
  },
  read: (text) => readQuantity(text, SIZES, "B", "A number and B, KiB or MiB, such as 64 KiB."),
};

function readQuantity(
  text: string,
  units: Readonly<Record<string, number>>,
  usual: string,
  wrong: string,
): Reading<Json | undefined> {
  if (text.trim() === "") return { value: undefined };
  const [, amount, unit = usual] = /^\s*(\d+(?:\.\d+)?)\s*([a-z]+)?\s*$/i.exec(text) ?? [];
  const name = Object.keys(units).find((known) => known.toLowerCase() === unit.toLowerCase());
  const value = Number(amount) * (units[name ?? ""] ?? Number.NaN);
  return Number.isInteger(value) ? { value } : { wrong };
}

/** Numbers separated by commas. */
export const NUMBERS: Codec<Json | undefined> = {
  show: (value) => (isArray(value) ? value.map((item) => JSON.stringify(item)).join(", ") : ""),
  read(text) {
    const numbers = NAMES.read(text) as { readonly value: readonly string[] };
    const values = numbers.value.map(parsed).filter(isNumber);
    if (values.length < numbers.value.length) return { wrong: "These are not numbers." };
    return { value: values.length === 0 ? undefined : values };
  },
};

/** An object as JSON. An empty text is no value. */
export const OPTIONAL_OBJECT: Codec<Json | undefined> = {
  show: (value) => (isObject(value) ? formatJson(value) : ""),
  read: (text) => (text.trim() === "" ? { value: undefined } : OBJECT.read(text)),
};

/** A name that nothing beside it has. */
export function uniqueName(taken: readonly string[]): Codec<string> {
  return {
    show: (name) => name,
    read(name) {
      if (name === "") return { wrong: "A name is required." };
      return taken.includes(name) ? { wrong: "This name is already in use." } : { value: name };
    },
  };
}

/** Returns what a text is as JSON, or undefined if it is none. */
function parsed(text: string): Json | undefined {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}
