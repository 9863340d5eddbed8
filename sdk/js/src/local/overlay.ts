/** The answer as the server knows it, with the pending writes applied on top. */

import type { Item } from "../live/snapshot.js";
import type { QuerySpec } from "../live/spec.js";
import type { Row } from "../live/view.js";
import { matches } from "./matcher.js";
import { orderBy, type PendingTimes } from "./order.js";
import { isPlain, type Plain } from "./paths.js";
import type { Pending } from "./writes.js";

export interface Shown {
  readonly key: string;
  readonly item: Item<unknown>;
  /** Set by pending writes. */
  readonly times?: PendingTimes;
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

/**
 * Returns the answer with the writes applied that this query has not caught up with: a copy of the
 * rows, which is changed for each of these writes.
 */
export function overlaid(
  rows: readonly Shown[],
  pending: readonly Pending[],
  spec: QuerySpec,
): Shown[] {
  const shown = rows.slice();
  // Only the server can compute the effect of a write on a row of several documents.
  if (spec.group !== undefined) return shown;
  pending.forEach((write, index) => {
    apply(shown, write, spec, index + 1);
  });
  return spec.limit === undefined ? shown : shown.slice(0, spec.limit);
}

function apply(shown: Shown[], write: Pending, spec: QuerySpec, number: number): void {
  const position = shown.findIndex(({ key }) => key === write.key);
  const current = shown[position];
  const document = current?.item.document;
  const outcome = write.outcome(isPlain(document) ? document : undefined);
  if (outcome.kind === "deleted") {
    if (current !== undefined) shown.splice(position, 1);
  } else if (outcome.kind === "document") {
    settle(shown, position, write, outcome.document, spec, number);
  } else if (current !== undefined) {
    // The write affects it, but the effect cannot be predicted here.
    shown[position] = { ...current, item: { ...current.item, isPending: true } };
  }
}

function settle(
  shown: Shown[],
  position: number,
  write: Pending,
  document: Plain,
  spec: QuerySpec,
  number: number,
): void {
  const current = shown[position];
  // A projected document may lack fields that filter and sort need. With lookups, looked-up
  // documents may replace fields, and those that a new document refers to are not known.
  const isWhole = spec.projection === undefined && spec.lookup === undefined;
  const verdict = isWhole ? matches(spec.filter, document) : undefined;
  if (verdict !== true && current === undefined) return;
  if (verdict === false) {
    shown.splice(position, 1);
    return;
  }
  const next = item(write, current, document, spec, number);
  const order = orderBy(spec.sort ?? []);
  if (current !== undefined && (!isWhole || order(placed(current), placed(next)) === 0)) {
    shown[position] = next;
    return;
  }
  if (current !== undefined) shown.splice(position, 1);
  const index = shown.findIndex((other) => order(placed(other), placed(next)) > 0);
  // A document before the first row of a later page may belong to the previous page.
  if (index === 0 && (spec.offset ?? 0) > 0) return;
  shown.splice(index < 0 ? shown.length : index, 0, next);
}

function placed({ item, times }: Shown) {
  return { id: item.id, document: item.document, times };
}

function item(
  write: Pending,
  current: Shown | undefined,
  document: Plain,
  spec: QuerySpec,
  number: number,
): Shown {
  const version = write.confirmation?.version ?? current?.item.version ?? null;
  const isPending = write.confirmation === undefined;
  const visible =
    current === undefined ? document : visibleOf(current.item.document, document, spec);
  return {
    key: write.key,
    item: { id: write.operation.id, version, document: visible, isPending },
    times: {
      created: current === undefined ? number : (current.times?.created ?? 0),
      updated: number,
    },
  };
}

/** Returns the visible part of a document: the fields of the current one, and its lookups. */
function visibleOf(current: unknown, document: Plain, spec: QuerySpec): unknown {
  const members = spec.projection === undefined ? document : onlyMembersOf(current, document);
  if (spec.lookup === undefined || !isPlain(members) || !isPlain(current)) return members;
  const names = spec.lookup.map(({ as }) => as).filter((name) => Object.hasOwn(current, name));
  return { ...members, ...Object.fromEntries(names.map((name) => [name, current[name]])) };
}

/** The fields of a projected document with their new values. */
function onlyMembersOf(current: unknown, document: Plain): unknown {
  if (!isPlain(current)) return current;
  const names = Object.keys(current).filter((name) => Object.hasOwn(document, name));
  return Object.fromEntries(names.map((name) => [name, document[name]]));
}
