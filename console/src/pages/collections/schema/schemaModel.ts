/** What the form shows of a JSON Schema, and how it changes it. Nothing else is touched. */

import {
  isArray,
  isNumber,
  isObject,
  isTextList,
  type Json,
  type JsonObject,
  renameMember,
  setMember,
  withMember,
  withoutMember,
} from "../../../ui/definition/exactJson";

/** Types by their names in `bsonType`, in the order of the form. */
export const TYPES = [
  ["string", "string"],
  ["number", "number"],
  ["bool", "boolean"],
  ["date", "date"],
  ["object", "object"],
  ["array", "array"],
  ["objectId", "ObjectId"],
  ["int", "32-bit integer"],
  ["long", "64-bit integer"],
  ["double", "double"],
  ["decimal", "decimal"],
  ["binData", "binary"],
  ["null", "null"],
] as const;

export type TypeName = (typeof TYPES)[number][0];

const NUMBERS: readonly TypeName[] = ["number", "int", "long", "double", "decimal"];
const JSON_NAMES: Partial<Record<TypeName, string>> = {
  string: "string",
  number: "number",
  bool: "boolean",
  object: "object",
  array: "array",
  null: "null",
};

/** Returns the types that a schema allows, none for any type; null if the form cannot show them. */
export function typesOf(schema: JsonObject): readonly TypeName[] | null {
  if ("type" in schema && "bsonType" in schema) return null;
  const names = schema.bsonType ?? schema.type;
  if (names === undefined) return [];
  const list = isArray(names) ? names : [names];
  const types = list.map((name) =>
    TYPES.map(([type]) => type).find((type) =>
      "bsonType" in schema ? type === name : JSON_NAMES[type] === name,
    ),
  );
  return types.every((type) => type !== undefined) ? types : null;
}

/** Writes `type` where that is enough, and `bsonType` otherwise, where the old types stood. */
export function withTypes(schema: JsonObject, types: readonly TypeName[]): JsonObject {
  const rest = withoutMember(withoutMember(schema, "type"), "bsonType");
  if (types.length === 0) return rest;
  const jsonNames = types.flatMap((type) => JSON_NAMES[type] ?? []);
  const isJson = jsonNames.length === types.length;
  const names: readonly string[] = isJson ? jsonNames : types;
  const [first = ""] = names;
  const entry: [string, Json] = [isJson ? "type" : "bsonType", names.length === 1 ? first : names];
  const place = Object.keys(schema).findIndex((name) => name === "type" || name === "bsonType");
  const entries = Object.entries(rest);
  return Object.fromEntries(entries.toSpliced(Math.max(place, 0), 0, entry));
}

export type Family = "text" | "number" | "array" | "object";

/** Returns the families of keywords that apply to a schema's types. */
export function familiesOf(schema: JsonObject): readonly Family[] {
  const types = typesOf(schema) ?? [];
  const families: readonly (readonly [Family, boolean])[] = [
    ["text", types.includes("string")],
    ["number", types.some((type) => NUMBERS.includes(type))],
    ["array", types.includes("array")],
    ["object", types.includes("object")],
  ];
  return families
    .filter(([family, applies]) => applies || KEYWORDS[family].some((name) => name in schema))
    .map(([family]) => family);
}

const KEYWORDS: Readonly<Record<Family, readonly string[]>> = {
  text: ["minLength", "maxLength", "pattern"],
  number: ["minimum", "maximum"],
  array: ["minItems", "maxItems", "uniqueItems", "items"],
  object: ["properties", "required", "additionalProperties"],
};

const isText = (value: Json) => typeof value === "string";
const isFlag = (value: Json) => typeof value === "boolean";

/** The keywords that the form has fields for, with the values that the fields can show. */
const SHOWN: Readonly<Record<string, (value: Json) => boolean>> = {
  minLength: isNumber,
  maxLength: isNumber,
  pattern: isText,
  minimum: isNumber,
  maximum: isNumber,
  minItems: isNumber,
  maxItems: isNumber,
  uniqueItems: isFlag,
  items: isObject,
  properties: isObject,
  required: isTextList,
  additionalProperties: isFlag,
  enum: (value) => isArray(value) && value.length > 0,
  description: isText,
};

/** Returns the keywords that only the JSON shows. */
export function keywordsInJson(schema: JsonObject): readonly string[] {
  const hasTypes = typesOf(schema) !== null;
  return Object.entries(schema)
    .filter(([name, value]) =>
      name === "type" || name === "bsonType"
        ? !hasTypes
        : !(Object.hasOwn(SHOWN, name) && SHOWN[name]?.(value)),
    )
    .map(([name]) => name);
}

/** Whether a keyword's field may change it. */
export function isShown(schema: JsonObject, keyword: string): boolean {
  return !keywordsInJson(schema).includes(keyword);
}

/** Returns the schemas of the fields by name. */
export function fieldsOf(schema: JsonObject): JsonObject {
  return isObject(schema.properties) ? schema.properties : {};
}

export function isRequired(schema: JsonObject, field: string): boolean {
  return isTextList(schema.required) && schema.required.includes(field);
}

/** Returns the required fields that have no schema of their own. */
export function otherRequired(schema: JsonObject): readonly string[] {
  if (!isTextList(schema.required)) return [];
  return schema.required.filter((name) => !Object.hasOwn(fieldsOf(schema), name));
}

/** An empty list of required fields is not valid. */
function withRequired(schema: JsonObject, required: readonly string[]): JsonObject {
  return setMember(schema, "required", required.length === 0 ? undefined : required);
}

export function setRequired(schema: JsonObject, field: string, on: boolean): JsonObject {
  const others = isTextList(schema.required)
    ? schema.required.filter((name) => name !== field)
    : [];
  return withRequired(schema, on ? [...others, field] : others);
}

export function setField(schema: JsonObject, field: string, value: JsonObject): JsonObject {
  return withMember(schema, "properties", withMember(fieldsOf(schema), field, value));
}

export function renameField(schema: JsonObject, from: string, to: string): JsonObject {
  const renamed = withMember(schema, "properties", renameMember(fieldsOf(schema), from, to));
  if (!isTextList(schema.required)) return renamed;
  return withRequired(
    renamed,
    schema.required.map((name) => (name === from ? to : name)),
  );
}

export function removeField(schema: JsonObject, field: string): JsonObject {
  const removed = withMember(schema, "properties", withoutMember(fieldsOf(schema), field));
  return isRequired(schema, field) ? setRequired(removed, field, false) : removed;
}

/** Adds a field with a name that is not taken. */
export function addField(schema: JsonObject): JsonObject {
  const fields = fieldsOf(schema);
  let number = Object.keys(fields).length + 1;
  while (Object.hasOwn(fields, `field_${number}`)) number += 1;
  return setField(schema, `field_${number}`, { type: "string" });
}

/** Says in a few words what a schema requires besides types. */
export function summaryOf(schema: JsonObject): string {
  const { enum: values, pattern, properties, items } = schema;
  return [
    range(schema, "minimum", "maximum", ""),
    range(schema, "minLength", "maxLength", " characters"),
    range(schema, "minItems", "maxItems", " items"),
    isArray(values) ? `one of ${values.length}` : "",
    typeof pattern === "string" ? `/${pattern}/` : "",
    isObject(properties) ? `${Object.keys(properties).length} fields` : "",
    isObject(items) ? `of ${typesText(items)}` : "",
    ...keywordsInJson(schema),
  ]
    .filter(Boolean)
    .join(" · ");
}

function range(schema: JsonObject, least: string, most: string, unit: string): string {
  const [from, to] = [schema[least], schema[most]].map((bound) =>
    isNumber(bound) ? JSON.stringify(bound) : undefined,
  );
  if (from === undefined && to === undefined) return "";
  if (from !== undefined && to !== undefined) return `${from} to ${to}${unit}`;
  return from === undefined ? `at most ${to}${unit}` : `at least ${from}${unit}`;
}

export function typesText(schema: JsonObject): string {
  const types = typesOf(schema);
  if (types === null) return "types in JSON";
  if (types.length === 0) return "any type";
  return types.map((type) => TYPES.find(([name]) => name === type)?.[1] ?? type).join(" or ");
}
