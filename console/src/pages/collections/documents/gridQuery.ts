/** The grid's inputs (conditions or a filter as text, and a sort), and the query that they form. */

import { type Client, type Document, type Filter, parseTyped, type Query } from "rillbase";
import { type Chosen, lookupsOf } from "./lookups";
import { typedValue } from "./values";

export type Operator = "==" | "!=" | "<" | "<=" | ">" | ">=" | "in" | "exists" | "contains";

export const OPERATORS: readonly (readonly [Operator, string])[] = [
  ["==", "is"],
  ["!=", "is not"],
  ["<", "<"],
  ["<=", "≤"],
  [">", ">"],
  [">=", "≥"],
  ["in", "is one of"],
  ["contains", "contains"],
  ["exists", "exists"],
];

export interface Condition {
  readonly id: string;
  readonly field: string;
  readonly operator: Operator;
  readonly text: string;
}

export interface GridQuery {
  readonly conditions: readonly Condition[];
  /** A filter in the query language, which is used together with the conditions. */
  readonly filterText: string;
  readonly sort: readonly (readonly [string, 1 | -1])[];
  readonly lookups: readonly Chosen[];
}

export const EVERYTHING: GridQuery = { conditions: [], filterText: "", sort: [], lookups: [] };

export function newCondition(field = ""): Condition {
  return { id: crypto.randomUUID(), field, operator: "==", text: "" };
}

/** Returns the filter, or throws a `SyntaxError` that says what is wrong with its text. */
export function filterOf(gridQuery: GridQuery): Record<string, unknown> {
  const parts = gridQuery.conditions.filter(({ field }) => field !== "").map(partOf);
  if (gridQuery.filterText.trim() !== "") parts.push(readFilterText(gridQuery.filterText));
  const [only] = parts;
  if (only === undefined) return {};
  return parts.length === 1 ? only : { $and: parts };
}

/** Returns a filter in the query language, or throws a `SyntaxError` that says what is wrong. */
export function readFilterText(text: string): Record<string, unknown> {
  if (text.trim() === "") return {};
  const typed = parseTyped(text);
  if (typeof typed !== "object" || typed === null || Array.isArray(typed)) {
    throw new SyntaxError("A filter must be an object.");
  }
  return typed as Record<string, unknown>;
}

function partOf({ field, operator, text }: Condition): Record<string, unknown> {
  switch (operator) {
    case "==":
      return { [field]: typedValue(text, undefined) };
    case "exists":
      return { [field]: { $exists: text !== "false" } };
    case "contains":
      return { [field]: { $regex: text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), $options: "i" } };
    case "in":
      return {
        [field]: { $in: text.split(",").map((item) => typedValue(item.trim(), undefined)) },
      };
    default: {
      const names = { "!=": "$ne", "<": "$lt", "<=": "$lte", ">": "$gt", ">=": "$gte" } as const;
      return { [field]: { [names[operator]]: typedValue(text, undefined) } };
    }
  }
}

export function queryOf(
  client: Client,
  collection: string,
  filter: Record<string, unknown>,
  gridQuery: GridQuery,
): Query {
  let query: Query = client.collection(collection);
  if (Object.keys(filter).length > 0) query = query.filter(filter as Filter<never>);
  for (const { from, local, as } of lookupsOf(gridQuery.lookups) ?? [])
    query = query.lookup<Document>(from, local, as);
  for (const [field, direction] of gridQuery.sort) query = query.sort(field, direction);
  return query;
}
