/** A schema that is inferred from documents. */

import type { Json, JsonObject } from "../../../ui/definition/exactJson";
import { kindOf, type ValueKind } from "./explain";
import { type TypeName, withTypes } from "./schemaModel";

const TYPES: Partial<Record<ValueKind, TypeName>> = {
  string: "string",
  number: "number",
  decimal: "decimal",
  boolean: "bool",
  null: "null",
  object: "object",
  array: "array",
  date: "date",
  objectId: "objectId",
};

/** Returns a schema that all of the documents, as Extended JSON, satisfy. */
export function suggestedSchema(documents: readonly JsonObject[]): JsonObject {
  const names = new Set(documents.flatMap((document) => Object.keys(document)));
  names.delete("_id");
  const properties = [...names].map((name) => [name, fieldSchema(documents, name)] as const);
  const required = [...names].filter((name) =>
    documents.every((document) => Object.hasOwn(document, name)),
  );
  return {
    type: "object",
    ...(required.length > 0 ? { required } : {}),
    properties: Object.fromEntries(properties),
  };
}

function fieldSchema(documents: readonly JsonObject[], name: string): JsonObject {
  const values = documents
    .filter((document) => Object.hasOwn(document, name))
    .map((document) => document[name] as Json);
  const types = [...new Set(values.map((value) => TYPES[kindOf(value)]))];
  return types.every((type) => type !== undefined) ? withTypes({}, types) : {};
}
