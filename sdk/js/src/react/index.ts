/** Live queries as React hooks. */

import { useCallback, useMemo, useSyncExternalStore } from "react";
import type { Aggregate, AggregateRow, RowQuery } from "../aggregate.js";
import type { DocumentRef } from "../document.js";
import { stringify } from "../ejson/encode.js";
import type { RillbaseError } from "../errors.js";
import { NO_ROWS, type RowsSnapshot } from "../live/live-rows.js";
import { type Item, NO_ANSWER, type QuerySnapshot, type QueryState } from "../live/snapshot.js";
import type { Query } from "../query.js";
import type { Document } from "../types.js";

/** The result of a query, as `useQuery` returns it. */
export interface QueryResult<T> {
  readonly documents: readonly T[];
  readonly items: readonly Item<T>[];
  readonly state: QueryState;
  /** True until an answer or an error arrives. */
  readonly isLoading: boolean;
  readonly hasPendingWrites: boolean;
  readonly error: RillbaseError | null;
}

/** A document, as `useDocument` returns it. */
export interface DocumentResult<T> {
  /** Null if it has not arrived yet or does not exist. */
  readonly document: T | null;
  readonly version: number | null;
  readonly state: QueryState;
  readonly isLoading: boolean;
  readonly hasPendingWrites: boolean;
  readonly error: RillbaseError | null;
}

/**
 * Keeps a component up to date with a query's answer. The query may be created again at each
 * rendering: equal queries share a subscription. With null, nothing is subscribed.
 */
export function useQuery<T extends Document>(query: Query<T> | null): QueryResult<T> {
  const snapshot = useSnapshot(query);
  return useMemo(() => {
    const { documents, items, state, hasAnswer, hasPendingWrites, error } = snapshot;
    const isLoading = query !== null && !hasAnswer && error === null;
    return { documents, items, state, isLoading, hasPendingWrites, error };
  }, [snapshot, query]);
}

/** Keeps a component up to date with one document. With null, nothing is subscribed. */
export function useDocument<T extends Document>(ref: DocumentRef<T> | null): DocumentResult<T> {
  const { items, state, isLoading, hasPendingWrites, error } = useQuery(
    ref === null ? null : ref.query,
  );
  const { document = null, version = null } = items[0] ?? {};
  return { document, version, state, isLoading, hasPendingWrites, error };
}

/** The rows of an aggregate, as `useAggregate` returns them. */
export interface RowsResult<R> {
  readonly rows: readonly R[];
  readonly state: QueryState;
  /** True until an answer or an error arrives. */
  readonly isLoading: boolean;
  readonly error: RillbaseError | null;
}

/**
 * Keeps a component up to date with an aggregate's rows. Aggregate and query may be created again
 * at each rendering: equal ones share a subscription. With null, nothing is subscribed.
 */
export function useAggregate<R extends AggregateRow>(
  aggregate: Aggregate<R> | null,
  query: RowQuery = {},
): RowsResult<R> {
  const core = aggregate?.core;
  const key = `${aggregate?.name} ${stringify(query)}`;
  // biome-ignore lint/correctness/useExhaustiveDependencies: `key` stands for both.
  const live = useMemo(() => aggregate?.live(query), [core, key]);
  const subscribe = useCallback(
    (onChange: () => void) => live?.listen(onChange) ?? (() => {}),
    [live],
  );
  const read = () => (live?.snapshot ?? NO_ROWS) as RowsSnapshot<R>;
  const { rows, state, hasAnswer, error } = useSyncExternalStore(subscribe, read, () => NO_ROWS);
  const isLoading = aggregate !== null && !hasAnswer && error === null;
  return { rows, state, isLoading, error };
}

function useSnapshot<T extends Document>(query: Query<T> | null): QuerySnapshot<T> {
  const key = query?.key;
  const core = query?.core;
  // Equal queries of one client are one object, however often they are created.
  // biome-ignore lint/correctness/useExhaustiveDependencies: `key` stands for the query.
  const live = useMemo(() => query?.core.live.of(query.spec), [core, key]);
  const subscribe = useCallback(
    (onChange: () => void) => live?.listen(onChange) ?? (() => {}),
    [live],
  );
  const read = () => (live?.snapshot ?? NO_ANSWER) as QuerySnapshot<T>;
  return useSyncExternalStore(subscribe, read, () => NO_ANSWER);
}
