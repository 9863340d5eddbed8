/** What the form shows of a dataset's definition, and how it changes it. */

import {
  isNumber,
  isObject,
  isTextList,
  type Json,
  type JsonObject,
  renameMember,
  setMember,
  withMember,
  withoutMember,
} from "../../ui/definition/exactJson";

export const COLUMN_TYPES = [
  "string",
  "int32",
  "int64",
  "double",
  "bool",
  "date",
  "timestamp",
] as const;

export const KEY_TYPES = ["string", "int64"] as const;

export function tablesOf(definition: JsonObject): JsonObject {
  return isObject(definition.tables) ? definition.tables : {};
}

export function idKeysOf(definition: JsonObject): JsonObject {
  return isObject(definition.id_keys) ? definition.id_keys : {};
}

export function columnsOf(table: JsonObject): JsonObject {
  return isObject(table.columns) ? table.columns : {};
}

export function keyOf(table: JsonObject): readonly string[] {
  return isTextList(table.key) ? table.key : [];
}

export function viewsOf(table: JsonObject): JsonObject {
  return isObject(table.views) ? table.views : {};
}

/** Returns a name that is not taken. */
export function freeName(taken: JsonObject, stem: string): string {
  let number = Object.keys(taken).length + 1;
  while (Object.hasOwn(taken, `${stem}_${number}`)) number += 1;
  return `${stem}_${number}`;
}

export function setTable(definition: JsonObject, name: string, table: JsonObject): JsonObject {
  return withMember(definition, "tables", withMember(tablesOf(definition), name, table));
}

export function renameTable(definition: JsonObject, from: string, to: string): JsonObject {
  return withMember(definition, "tables", renameMember(tablesOf(definition), from, to));
}

export function removeTable(definition: JsonObject, name: string): JsonObject {
  return withMember(definition, "tables", withoutMember(tablesOf(definition), name));
}

export function addTable(definition: JsonObject): JsonObject {
  const name = freeName(tablesOf(definition), "table");
  return setTable(definition, name, { columns: { id: "int64" }, key: ["id"] });
}

export function setColumn(table: JsonObject, column: string, type: Json): JsonObject {
  return withMember(table, "columns", withMember(columnsOf(table), column, type));
}

export function addColumn(table: JsonObject): JsonObject {
  return setColumn(table, freeName(columnsOf(table), "column"), "string");
}

/** Renames a column also in keys and views. */
export function renameColumn(table: JsonObject, from: string, to: string): JsonObject {
  const renamed = withMember(table, "columns", renameMember(columnsOf(table), from, to));
  return mapColumns(renamed, (names) => names.map((name) => (name === from ? to : name)));
}

/** Removes a column also from keys and views. */
export function removeColumn(table: JsonObject, column: string): JsonObject {
  const removed = withMember(table, "columns", withoutMember(columnsOf(table), column));
  return mapColumns(removed, (names) => names.filter((name) => name !== column));
}

type NamesChange = (names: readonly string[]) => readonly string[];

function mapColumns(table: JsonObject, change: NamesChange): JsonObject {
  const changed = mapList(table, "key", change);
  if (!isObject(table.views)) return changed;
  const views = Object.entries(table.views).map(([name, view]) => [
    name,
    isObject(view) ? mapList(mapList(view, "key", change), "columns", change) : view,
  ]);
  return withMember(changed, "views", Object.fromEntries(views));
}

function mapList(object: JsonObject, name: string, change: NamesChange): JsonObject {
  const names = object[name];
  return isTextList(names) ? withMember(object, name, change(names)) : object;
}

/** Adds a column at the end of the key, or takes it out. */
export function setInKey(table: JsonObject, column: string, on: boolean): JsonObject {
  const others = keyOf(table).filter((name) => name !== column);
  return withMember(table, "key", on ? [...others, column] : others);
}

export function setView(table: JsonObject, name: string, view: Json | undefined): JsonObject {
  return withMember(table, "views", setMember(viewsOf(table), name, view));
}

export function renameView(table: JsonObject, from: string, to: string): JsonObject {
  return withMember(table, "views", renameMember(viewsOf(table), from, to));
}

export function addView(table: JsonObject): JsonObject {
  return setView(table, freeName(viewsOf(table), "view"), { key: [...keyOf(table)] });
}

export function setIdKey(definition: JsonObject, name: string, type: Json | undefined): JsonObject {
  return withMember(definition, "id_keys", setMember(idKeysOf(definition), name, type));
}

export function renameIdKey(definition: JsonObject, from: string, to: string): JsonObject {
  return withMember(definition, "id_keys", renameMember(idKeysOf(definition), from, to));
}

type Check = (value: Json) => boolean;

const DEFINITION: Readonly<Record<string, Check>> = {
  name: (value) => typeof value === "string",
  tables: isObject,
  id_keys: isObject,
  retention_s: isNumber,
};
const TABLE: Readonly<Record<string, Check>> = {
  columns: (value) => isObject(value) && isTextList(Object.values(value)),
  key: isTextList,
  views: isObject,
};
const VIEW: Readonly<Record<string, Check>> = { key: isTextList, columns: isTextList };

function inJson(object: JsonObject, shown: Readonly<Record<string, Check>>): readonly string[] {
  return Object.entries(object)
    .filter(([name, value]) => !(Object.hasOwn(shown, name) && shown[name]?.(value)))
    .map(([name]) => name);
}

/** Return the members that only the JSON shows. */
export const membersInJson = (definition: JsonObject) => inJson(definition, DEFINITION);
export const tableInJson = (table: JsonObject) => inJson(table, TABLE);
export const viewInJson = (view: JsonObject) => inJson(view, VIEW);
