/** The state of a query for its listeners: the current local answer, and how it changed. */

import type { RillbaseError } from "../errors.js";

/**
 * `connecting` until the first answer or during a reconnect, `live` if silence means that nothing
 * has changed, `stale` if the answer may be outdated, `offline` while there is no connection.
 */
export type QueryState = "connecting" | "live" | "stale" | "offline" | "failed";

/** A document in a snapshot. */
export interface Item<T> {
  readonly id: unknown;
  /** The server's version; a document that only exists locally has none. */
  readonly version: number | null;
  readonly document: T;
  /** Whether it includes a write that the server has not confirmed. */
  readonly isPending: boolean;
}

/** A difference between a snapshot and the previous one. */
export interface ItemChange<T> {
  readonly type: "add" | "change" | "move" | "remove";
  readonly item: Item<T>;
  /** The index in the new answer; -1 for `remove`. */
  readonly index: number;
  /** The index in the previous answer; -1 for `add`. */
  readonly oldIndex: number;
}

/** The current result of a live query. */
export interface QuerySnapshot<T> {
  readonly documents: readonly T[];
  readonly items: readonly Item<T>[];
  readonly changes: readonly ItemChange<T>[];
  readonly state: QueryState;
  /** Whether an answer has arrived. */
  readonly hasAnswer: boolean;
  readonly hasPendingWrites: boolean;
  /** The error that ended the query, if the state is `failed`. */
  readonly error: RillbaseError | null;
}

interface Keyed<T> {
  readonly key: string;
  readonly item: Item<T>;
}

/**
 * Returns the changes from one answer to the other: removed documents, then new, changed and moved
 * ones.
 */
export function difference<T>(
  before: readonly Keyed<T>[],
  after: readonly Keyed<T>[],
): ItemChange<T>[] {
  // A change usually leaves the order as it is, so most rows are the same at both ends.
  const start = sameAtStart(before, after);
  const end = sameAtEnd(before, after, start);
  const old = new Map(
    before.slice(start, before.length - end).map(({ key, item }, at) => [key, { item, at }]),
  );
  const kept = new Set(after.slice(start, after.length - end).map(({ key }) => key));
  const changes: ItemChange<T>[] = [];
  for (const [key, { item, at }] of old) {
    if (!kept.has(key)) changes.push({ type: "remove", item, index: -1, oldIndex: start + at });
  }
  let reached = -1;
  after.forEach(({ key, item }, index) => {
    const oldIndex = oldIndexOf(index);
    const was = oldIndex === undefined ? old.get(key) : before[oldIndex];
    if (was === undefined) {
      changes.push({ type: "add", item, index, oldIndex: -1 });
      return;
    }
    const from = oldIndex ?? start + (old.get(key)?.at ?? 0);
    const type = from < reached ? "move" : "change";
    reached = Math.max(reached, from);
    if (type === "move" || !isSame(was.item, item)) {
      changes.push({ type, item, index, oldIndex: from });
    }
  });
  return changes;

  /** The former index of a row at one of the ends. */
  function oldIndexOf(index: number): number | undefined {
    if (index < start) return index;
    const fromEnd = after.length - index;
    return fromEnd <= end ? before.length - fromEnd : undefined;
  }
}

function sameAtStart<T>(before: readonly Keyed<T>[], after: readonly Keyed<T>[]): number {
  const length = Math.min(before.length, after.length);
  let count = 0;
  while (count < length && before[count]?.key === after[count]?.key) count += 1;
  return count;
}

function sameAtEnd<T>(
  before: readonly Keyed<T>[],
  after: readonly Keyed<T>[],
  start: number,
): number {
  const length = Math.min(before.length, after.length) - start;
  let count = 0;
  while (count < length && before.at(-1 - count)?.key === after.at(-1 - count)?.key) count += 1;
  return count;
}

function isSame<T>(left: Item<T>, right: Item<T>): boolean {
  return (
    left.document === right.document &&
    left.version === right.version &&
    left.isPending === right.isPending
  );
}

/** The snapshot before the server has responded. */
export const NO_ANSWER: QuerySnapshot<never> = {
  documents: [],
  items: [],
  changes: [],
  state: "connecting",
  hasAnswer: false,
  hasPendingWrites: false,
  error: null,
};
