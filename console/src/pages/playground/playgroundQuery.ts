/** The playground's query, parsed from the texts of its fields. */

import {
  type Client,
  encode,
  type Group,
  type Lookup,
  type Measure,
  parseTyped,
  type Query,
} from "rillbase";
import { type Chosen, lookupsOf } from "../collections/documents/lookups";

export type Plain = Record<string, unknown>;

export interface QueryInputs {
  readonly collection: string;
  readonly filter: string;
  readonly sort: string;
  readonly limit: string;
  /** Fields, and measures such as `count, sum(price)`. If both are empty, the query returns documents. */
  readonly by: string;
  readonly measures: string;
  readonly lookups: readonly Chosen[];
}

export interface PlaygroundQuery {
  readonly collection: string;
  readonly filter: Plain;
  readonly sort: readonly (readonly [string, 1 | -1])[];
  readonly limit: number;
  readonly group?: Group;
  readonly lookup?: readonly Lookup[];
}

export const MAX_LIMIT = 1_000;

/** Returns the query, or throws a `SyntaxError` that says what cannot be read. */
export function read(typed: QueryInputs): PlaygroundQuery {
  const { collection, filter, sort, limit, by, measures } = typed;
  const parsed = parseTyped(filter.trim() === "" ? "{}" : filter);
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed))
    throw new SyntaxError("A filter must be an object.");
  const fields = parts(by);
  const named = measuresOf(measures);
  const lookup = lookupsOf(typed.lookups);
  const isGrouped = fields.length > 0 || Object.keys(named).length > 0;
  return {
    collection,
    filter: parsed as Plain,
    sort: parts(sort).map((part) => (part.startsWith("-") ? [part.slice(1), -1] : [part, 1])),
    limit: Math.min(MAX_LIMIT, Math.max(1, Number(limit) || 20)),
    ...(isGrouped ? { group: { by: fields, measures: named } } : {}),
    ...(lookup === undefined ? {} : { lookup }),
  };
}

function parts(text: string): string[] {
  return text
    .split(",")
    .map((part) => part.trim())
    .filter(Boolean);
}

/** `count`, `sum(price)`, and with a custom name `total: sum(price)`. */
const MEASURE = /^(?:([A-Za-z_]\w*)\s*:\s*)?(?:(count)|(sum|avg|min|max)\s*\(\s*([^()\s]+)\s*\))$/;

function measuresOf(text: string): Record<string, Measure> {
  const measures: Record<string, Measure> = {};
  for (const part of parts(text)) {
    const [, name, count, op, field] = MEASURE.exec(part) ?? [];
    if (count !== undefined) measures[name ?? count] = { op: "count" };
    else if (op !== undefined && field !== undefined)
      measures[name ?? `${op}_${field.replaceAll(".", "_")}`] = { op, field } as Measure;
    else throw new SyntaxError(`${part}: a measure is count, or sum, avg, min or max of a field.`);
  }
  return measures;
}

export function queryOf(client: Client, playgroundQuery: PlaygroundQuery): Query<Plain> {
  let query: Query<Plain> = client.collection<Plain>(playgroundQuery.collection);
  if (Object.keys(playgroundQuery.filter).length > 0) query = query.filter(playgroundQuery.filter);
  if (playgroundQuery.group !== undefined)
    query = query.group<Plain>(playgroundQuery.group.by, playgroundQuery.group.measures);
  for (const { from, local, as } of playgroundQuery.lookup ?? [])
    query = query.lookup<Plain>(from, local, as);
  for (const [field, direction] of playgroundQuery.sort) query = query.sort(field, direction);
  return query.limit(playgroundQuery.limit);
}

/** The query as the API takes it, in Extended JSON. */
export function bodyOf({ collection: _, ...body }: PlaygroundQuery): object {
  return encode(body) as object;
}
