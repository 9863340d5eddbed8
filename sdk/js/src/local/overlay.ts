/** The answer as the server knows it, with the pending writes applied on top. */

import type { Item } from "../live/snapshot.js";
import type { QuerySpec } from "../live/spec.js";
import type { Row } from "../live/view.js";
import { matches } from "./matcher.js";
import { orderBy } from "./order.js";
import { isPlain, type Plain } from "./paths.js";
import type { Pending } from "./writes.js";

export interface Shown {
  readonly key: string;
  readonly item: Item<unknown>;
}

const items = new WeakMap<Row, Shown>();

/** Returns rows as they are shown; the same object for the same row. */
export function shownRow(row: Row): Shown {
  let shown = items.get(row);
  if (shown === undefined) {
    const { key, id, version, document } = row;
    shown = { key, item: { id, version, document, isPending: false } };
    items.set(row, shown);
  }
  return shown;
}

/** Returns the answer with the writes applied that this query has not caught up with. */
export function overlaid(
  rows: readonly Row[],
  pending: readonly Pending[],
  spec: QuerySpec,
): Shown[] {
  const shown = rows.map(shownRow);
  // What a write does to a row that is made of several documents only the server can tell.
  if (spec.group !== undefined) return shown;
  for (const write of pending) apply(shown, write, spec);
  return spec.limit === undefined ? shown : shown.slice(0, spec.limit);
}

function apply(shown: Shown[], write: Pending, spec: QuerySpec): void {
  const place = shown.findIndex(({ key }) => key === write.key);
  const held = shown[place];
  const document = held?.item.document;
  const outcome = write.outcome(isPlain(document) ? document : undefined);
  if (outcome.kind === "deleted") {
    if (held !== undefined) shown.splice(place, 1);
  } else if (outcome.kind === "document") {
    settle(shown, place, write, outcome.document, spec);
  } else if (held !== undefined) {
    // The write affects it, but the effect cannot be predicted here.
    shown[place] = { ...held, item: { ...held.item, isPending: true } };
  }
}

function settle(
  shown: Shown[],
  place: number,
  write: Pending,
  document: Plain,
  spec: QuerySpec,
): void {
  const held = shown[place];
  // A projected document may lack fields that filter and sort need. With lookups, looked-up
  // documents may replace fields, and those that a new document refers to are not known.
  const isWhole = spec.projection === undefined && spec.lookup === undefined;
  const verdict = isWhole ? matches(spec.filter, document) : undefined;
  if (verdict !== true && held === undefined) return;
  if (verdict === false) {
    shown.splice(place, 1);
    return;
  }
  const next = item(write, held, document, spec);
  const order = orderBy(spec.sort ?? []);
  if (held !== undefined && (!isWhole || order(held.item, next.item) === 0)) {
    shown[place] = next;
    return;
  }
  if (held !== undefined) shown.splice(place, 1);
  const found = shown.findIndex((other) => order(other.item, next.item) > 0);
  // A document before the first row of a later page may belong to the previous page.
  if (found === 0 && (spec.offset ?? 0) > 0) return;
  shown.splice(found < 0 ? shown.length : found, 0, next);
}

function item(write: Pending, held: Shown | undefined, document: Plain, spec: QuerySpec): Shown {
  const version = write.confirmation?.version ?? held?.item.version ?? null;
  const isPending = write.confirmation === undefined;
  const visible = held === undefined ? document : visibleOf(held.item.document, document, spec);
  return {
    key: write.key,
    item: { id: write.operation.id, version, document: visible, isPending },
  };
}

/** Returns the visible part of a document: the fields of the current one, and its lookups. */
function visibleOf(held: unknown, document: Plain, spec: QuerySpec): unknown {
  const members = spec.projection === undefined ? document : onlyMembersOf(held, document);
  if (spec.lookup === undefined || !isPlain(members) || !isPlain(held)) return members;
  const names = spec.lookup.map(({ as }) => as).filter((name) => Object.hasOwn(held, name));
  return { ...members, ...Object.fromEntries(names.map((name) => [name, held[name]])) };
}

/** The fields of a projected document with their new values. */
function onlyMembersOf(held: unknown, document: Plain): unknown {
  if (!isPlain(held)) return held;
  const names = Object.keys(held).filter((name) => Object.hasOwn(document, name));
  return Object.fromEntries(names.map((name) => [name, document[name]]));
}
