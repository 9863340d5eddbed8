/** The query that the playground opens with. */

import type { Collection } from "../../api/types";
import { isObject } from "../../ui/definition/exactJson";
import type { QueryInputs } from "./playgroundQuery";

export const NOTHING_TYPED: QueryInputs = {
  collection: "",
  filter: "{}",
  sort: "",
  limit: "20",
  by: "",
  measures: "",
  lookups: [],
};

/** A query of a collection with a schema, sorted by its first number; or of any, or of none. */
export function exampleOf(collections: readonly Collection[]): QueryInputs {
  const sorted = collections.find((collection) => numberOf(collection) !== undefined);
  if (sorted !== undefined)
    return { ...NOTHING_TYPED, collection: sorted.name, sort: `-${numberOf(sorted)}` };
  return { ...NOTHING_TYPED, collection: collections[0]?.name ?? "" };
}

const NUMBERS: readonly unknown[] = ["number", "int", "long", "double", "decimal"];

function numberOf({ schema }: Collection): string | undefined {
  const properties: unknown = schema?.properties;
  if (typeof properties !== "object" || properties === null) return undefined;
  return Object.entries(properties).find(
    ([, property]) => isObject(property) && NUMBERS.includes(property.bsonType ?? property.type),
  )?.[0];
}

const MAX_SUMMARY = 60;

/** A query of the history; one that an earlier version stored may lack members. */
export function inputsFrom(entry: string): QueryInputs {
  return { ...NOTHING_TYPED, ...(JSON.parse(entry) as Partial<QueryInputs>) };
}

/** A query of the history in one line. */
export function summaryOf(entry: string): string {
  const { collection, filter, sort, by } = inputsFrom(entry);
  const parts = [
    collection,
    filter.trim() === "{}" ? "" : filter.replace(/\s+/g, " "),
    by === "" ? "" : `by ${by}`,
    sort === "" ? "" : `sort ${sort}`,
  ];
  const text = parts.filter((part) => part !== "").join(" ");
  return text.length > MAX_SUMMARY ? `${text.slice(0, MAX_SUMMARY)}…` : text;
}
