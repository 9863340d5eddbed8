/** The state of a query for its listeners: the current local answer, and how it changed. */

import type { RillbaseError } from "../errors.js";

/**
 * `connecting` until the first answer or while coming back, `live` when silence means that nothing
 * changes, `stale` when the server is behind and what is shown may be old, `offline` while there is
 * no connection.
 */
export type QueryState = "connecting" | "live" | "stale" | "offline" | "failed";

/** A document as it is shown. */
export interface Item<T> {
  readonly id: unknown;
  /** The server's version; a document that only exists locally has none. */
  readonly version: number | null;
  readonly document: T;
  /** Whether a write that the server has not confirmed is part of what is shown. */
  readonly isPending: boolean;
}

/** What changed between a snapshot and the one before. */
export interface ItemChange<T> {
  readonly type: "add" | "change" | "move" | "remove";
  readonly item: Item<T>;
  /** The place in the new answer, for `remove` -1. */
  readonly index: number;
  /** The place in the former answer, for `add` -1. */
  readonly oldIndex: number;
}

export interface QuerySnapshot<T> {
  readonly documents: readonly T[];
  readonly items: readonly Item<T>[];
  readonly changes: readonly ItemChange<T>[];
  readonly state: QueryState;
  /** Whether there has been an answer at all. */
  readonly hasAnswer: boolean;
  readonly hasPendingWrites: boolean;
  /** Why the query has ended, with the state `failed`. */
  readonly error: RillbaseError | null;
}

interface Keyed<T> {
  readonly key: string;
  readonly item: Item<T>;
}

/** Returns how one answer became the other: what went, then what is new, changed or moved. */
export function difference<T>(
  before: readonly Keyed<T>[],
  after: readonly Keyed<T>[],
): ItemChange<T>[] {
  const old = new Map(before.map(({ key, item }, index) => [key, { item, index }]));
  const added = new Map(after.map(({ key }, index) => [key, index]));
  const changes: ItemChange<T>[] = [];
  before.forEach(({ key, item }, oldIndex) => {
    if (!added.has(key)) changes.push({ type: "remove", item, index: -1, oldIndex });
  });
  const stayed = before.filter(({ key }) => added.has(key)).map(({ key }) => key);
  const ranks = new Map(stayed.map((key, rank) => [key, rank]));
  let reached = -1;
  after.forEach(({ key, item }, index) => {
    const was = old.get(key);
    if (was === undefined) {
      changes.push({ type: "add", item, index, oldIndex: -1 });
      return;
    }
    const rank = ranks.get(key) ?? 0;
    const type = rank < reached ? "move" : "change";
    reached = Math.max(reached, rank);
    if (type === "move" || !isSame(was.item, item)) {
      changes.push({ type, item, index, oldIndex: was.index });
    }
  });
  return changes;
}

function isSame<T>(left: Item<T>, right: Item<T>): boolean {
  return (
    left.document === right.document &&
    left.version === right.version &&
    left.isPending === right.isPending
  );
}

/** What there is before the server has answered. */
export const NO_ANSWER: QuerySnapshot<never> = {
  documents: [],
  items: [],
  changes: [],
  state: "connecting",
  hasAnswer: false,
  hasPendingWrites: false,
  error: null,
};
