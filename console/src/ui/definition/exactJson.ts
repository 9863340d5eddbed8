/**
 * JSON values that keep the way in which numbers are written. The server distinguishes `1` from
 * `1.0`, and numbers may have more digits than JavaScript's, so such a number is kept as its text.
 */

export type Json = null | boolean | number | string | NumberText | readonly Json[] | JsonObject;

export interface JsonObject {
  readonly [name: string]: Json;
}

/** A number that `JSON.stringify` writes as it was read. */
export interface NumberText {
  readonly rawJSON: string;
}

interface SourceTextAccess {
  rawJSON(text: string): NumberText;
  isRawJSON(value: unknown): value is NumberText;
}

/** Older browsers lack these functions; there, `survivesForm` protects such numbers. */
const access = JSON as unknown as Partial<SourceTextAccess>;

type Reviver = (name: string, value: unknown) => unknown;

export function parseJson(text: string): Json {
  return JSON.parse(text, exactNumber as Reviver) as Json;
}

/** A reviver that keeps numbers as they are written. */
export function exactNumber(
  _name: string,
  value: unknown,
  context?: { readonly source?: string },
): unknown {
  const isOther =
    typeof value === "number" && context?.source !== undefined && String(value) !== context.source;
  return isOther ? (access.rawJSON?.(context.source) ?? value) : value;
}

const LONG_INTEGER = /\d{16}/;

/** Parses an answer, in which only integers beyond 2^53 are kept as their texts. */
export function parseAnswer(text: string): unknown {
  if (!LONG_INTEGER.test(text)) return JSON.parse(text);
  const revive: typeof exactNumber = (name, value, context) =>
    Number.isInteger(value) && !Number.isSafeInteger(value)
      ? exactNumber(name, value, context)
      : value;
  return JSON.parse(text, revive as Reviver);
}

export function formatJson(value: Json): string {
  return JSON.stringify(value, null, 2);
}

/** Returns an object with a line for each member, for examples. */
export function formatExample(object: JsonObject): string {
  const lines = Object.entries(object).map(
    ([name, value]) => `  ${JSON.stringify(name)}: ${spaced(value)}`,
  );
  return `{\n${lines.join(",\n")}\n}`;
}

function spaced(value: Json): string {
  if (isArray(value)) return `[${value.map(spaced).join(", ")}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const members = Object.entries(value).map(
    ([name, member]) => `${JSON.stringify(name)}: ${spaced(member)}`,
  );
  return `{${members.join(", ")}}`;
}

/** Returns a member of an object that is given as JSON. */
export function memberOf(text: string, name: string): Json {
  const value = parseJson(text);
  return isObject(value) ? (value[name] ?? null) : null;
}

export function isNumberText(value: unknown): value is NumberText {
  return access.isRawJSON?.(value) ?? false;
}

export function isNumber(value: Json | undefined): value is number | NumberText {
  return typeof value === "number" || isNumberText(value);
}

export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !isArray(value) && !isNumberText(value);
}

export function isArray(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value);
}

export function isTextList(value: Json | undefined): value is readonly string[] {
  return isArray(value) && value.every((item) => typeof item === "string");
}

export function isSame(a: Json | undefined, b: Json | undefined): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

const TOKENS = /"(?:[^"\\]|\\.)*"|[^\s"]+/g;

/**
 * Whether nothing but white space changes when a text is read and written: no member occurs twice,
 * and none has a name that JavaScript would move, such as `"1"` behind `"b"`.
 */
export function survivesForm(text: string): boolean {
  const compact = (text.match(TOKENS) ?? [])
    .map((token) => (token.startsWith('"') ? JSON.stringify(JSON.parse(token)) : token))
    .join("");
  return compact === JSON.stringify(parseJson(text));
}

/** Returns an object with a member replaced where it stands, or added at the end. */
export function withMember(object: JsonObject, name: string, value: Json): JsonObject {
  return { ...object, [name]: value };
}

export function withoutMember(object: JsonObject, name: string): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([other]) => other !== name));
}

/** Sets a member, or removes it if there is no value. */
export function setMember(object: JsonObject, name: string, value: Json | undefined): JsonObject {
  return value === undefined ? withoutMember(object, name) : withMember(object, name, value);
}

export function renameMember(object: JsonObject, from: string, to: string): JsonObject {
  return Object.fromEntries(
    Object.entries(object).map(([name, value]) => [name === from ? to : name, value]),
  );
}
