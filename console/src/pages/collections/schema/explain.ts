/**
 * Says why a document violates a schema, as far as the form can express it. Whether it does is the server's decision; this only explains it.
 */

import {
  isArray,
  isNumber,
  isObject,
  isTextList,
  type Json,
  type JsonObject,
} from "../../../ui/definition/exactJson";
import { fieldsOf, type TypeName, typesOf, typesText } from "./schemaModel";

export type ValueKind =
  | "string"
  | "number"
  | "decimal"
  | "boolean"
  | "null"
  | "object"
  | "array"
  | "date"
  | "objectId"
  | "other";

const WRAPPED: Readonly<Record<string, ValueKind>> = {
  $date: "date",
  $oid: "objectId",
  $numberDecimal: "decimal",
  $numberDouble: "number",
  $numberLong: "number",
  $numberInt: "number",
};

/** Returns the type of a value in Extended JSON. */
export function kindOf(value: Json): ValueKind {
  if (value === null) return "null";
  if (isNumber(value)) return "number";
  if (isArray(value)) return "array";
  if (!isObject(value)) return typeof value as ValueKind;
  const [name = "", ...others] = Object.keys(value);
  if (others.length === 0 && Object.hasOwn(WRAPPED, name)) return WRAPPED[name] ?? "object";
  return name.startsWith("$") ? "other" : "object";
}

const KINDS: Partial<Record<TypeName, ValueKind>> = {
  string: "string",
  bool: "boolean",
  date: "date",
  object: "object",
  array: "array",
  objectId: "objectId",
  null: "null",
  decimal: "decimal",
};

/** The kinds of numbers cannot be told apart in relaxed Extended JSON. */
function fitsType(kind: ValueKind, type: TypeName): boolean {
  if (kind === "other") return true;
  return type === "number"
    ? kind === "number" || kind === "decimal"
    : (KINDS[type] ?? "number") === kind;
}

/** Returns what is wrong, the first reason first; nothing if it is not known. */
export function explain(schema: JsonObject, value: Json, path = ""): readonly string[] {
  const types = typesOf(schema) ?? [];
  const kind = kindOf(value);
  if (types.length > 0 && !types.some((type) => fitsType(kind, type)))
    return [`${named(path)} is ${nameOf(kind)}, not ${typesText(schema)}`];
  return [
    ...explainValue(schema, value, path),
    ...(isObject(value) && kind === "object" ? explainFields(schema, value, path) : []),
    ...(isArray(value) ? explainElements(schema, value, path) : []),
  ];
}

function explainFields(schema: JsonObject, value: JsonObject, path: string): readonly string[] {
  const fields = fieldsOf(schema);
  const required = isTextList(schema.required) ? schema.required : [];
  const missing = required.filter((name) => !Object.hasOwn(value, name));
  const others = Object.keys(value).filter((name) => !Object.hasOwn(fields, name));
  return [
    ...missing.map((name) => `${join(path, name)} is missing`),
    ...Object.entries(fields).flatMap(([name, field]) =>
      isObject(field) && Object.hasOwn(value, name)
        ? explain(field, value[name] as Json, join(path, name))
        : [],
    ),
    ...(schema.additionalProperties === false && schema.patternProperties === undefined
      ? others.map((name) => `${join(path, name)} is not a field of the schema`)
      : []),
  ];
}

function explainElements(
  schema: JsonObject,
  elements: readonly Json[],
  path: string,
): readonly string[] {
  const { items } = schema;
  return [
    ...bounds(schema, "minItems", "maxItems", elements.length, `${named(path)} has`, " items"),
    ...(isObject(items)
      ? elements.flatMap((element, place) => explain(items, element, join(path, String(place))))
      : []),
  ];
}

function explainValue(schema: JsonObject, value: Json, path: string): readonly string[] {
  const { enum: allowed } = schema;
  const isForeign =
    isArray(allowed) && !allowed.some((one) => JSON.stringify(one) === JSON.stringify(value));
  const foreign = isForeign ? [`${named(path)} is not one of the allowed values`] : [];
  if (typeof value === "number")
    return [...foreign, ...bounds(schema, "minimum", "maximum", value, `${named(path)} is`, "")];
  if (typeof value !== "string") return foreign;
  const length = [...value].length;
  return [
    ...foreign,
    ...bounds(schema, "minLength", "maxLength", length, `${named(path)} has`, " characters"),
    ...(typeof schema.pattern === "string" && !matches(schema.pattern, value)
      ? [`${named(path)} does not match the pattern`]
      : []),
  ];
}

function bounds(
  schema: JsonObject,
  least: string,
  most: string,
  amount: number,
  start: string,
  unit: string,
): readonly string[] {
  const [from, to] = [schema[least], schema[most]].map((bound) =>
    isNumber(bound) ? Number(JSON.stringify(bound)) : undefined,
  );
  if (from !== undefined && amount < from) return [`${start} ${amount}${unit}, less than ${from}`];
  if (to !== undefined && amount > to) return [`${start} ${amount}${unit}, more than ${to}`];
  return [];
}

/** The server's patterns have features that JavaScript's lack; such a pattern is not explained. */
function matches(pattern: string, text: string): boolean {
  try {
    return new RegExp(pattern, "u").test(text);
  } catch {
    return true;
  }
}

function join(path: string, name: string): string {
  return path === "" ? name : `${path}.${name}`;
}

function named(path: string): string {
  return path === "" ? "The document" : path;
}

function nameOf(kind: ValueKind): string {
  const names: Partial<Record<ValueKind, string>> = {
    string: "a string",
    number: "a number",
    decimal: "a decimal",
    boolean: "a boolean",
    null: "null",
    object: "an object",
    array: "an array",
    date: "a date",
    objectId: "an ObjectId",
  };
  return names[kind] ?? "of another type";
}
