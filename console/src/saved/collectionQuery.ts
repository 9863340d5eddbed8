/** A saved query over a collection, as the playground's inputs and as a query. */

import { encode, type Group, type Lookup, parseTyped, printTyped } from "rillbase";
import type { SavedQuery } from "../api/types";
import type { PlaygroundQuery, QueryInputs } from "../pages/playground/playgroundQuery";

type Plain = Record<string, unknown>;
type Stored = Readonly<Record<string, unknown>>;

/** Returns the body of the query call. */
export function storedQuery({ collection: _, filter, ...query }: PlaygroundQuery): Stored {
  return { filter: encode(filter), ...query };
}

export function playgroundQueryOf({ source, query }: SavedQuery): PlaygroundQuery {
  const { filter = {}, limit = 100, group, lookup } = query as Partial<PlaygroundQuery>;
  return {
    collection: source,
    filter: filterOf(filter),
    sort: sortOf(query.sort),
    limit,
    ...(group === undefined ? {} : { group }),
    ...(lookup === undefined ? {} : { lookup }),
  };
}

/** A stored filter is Extended JSON. */
function filterOf(stored: unknown): Plain {
  return parseTyped(JSON.stringify(stored)) as Plain;
}

type Sort = PlaygroundQuery["sort"];

/** The API takes a sort as pairs or as an object. */
function sortOf(sort: unknown): Sort {
  return Array.isArray(sort) ? (sort as Sort) : Object.entries((sort ?? {}) as Record<string, 1>);
}

export function inputsOf(saved: SavedQuery): QueryInputs {
  const { collection, sort, limit, group, lookup } = playgroundQueryOf(saved);
  return {
    collection,
    filter: printTyped(filterOf(saved.query.filter ?? {}), 2),
    sort: sort.map(([field, direction]) => (direction < 0 ? `-${field}` : field)).join(", "),
    limit: String(limit),
    by: (group?.by ?? []).join(", "),
    measures: measuresText(group),
    lookups: (lookup ?? []).map((one: Lookup) => ({ key: one.as, ...one })),
  };
}

function measuresText(group: Group | undefined): string {
  return Object.entries(group?.measures ?? {})
    .map(([name, measure]) => {
      const text = measure.op === "count" ? "count" : `${measure.op}(${measure.field})`;
      return name === text ? text : `${name}: ${text}`;
    })
    .join(", ");
}
