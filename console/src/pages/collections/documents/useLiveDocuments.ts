/**
 * The live documents of a query.
 *
 * It subscribes to a window of the answer, which grows while the user scrolls towards its end; the
 * current documents stay visible until the larger window has its answer. It also returns the rows
 * that have changed since they were last shown, which the grid highlights.
 */

import { useCallback, useEffect, useRef, useState } from "react";
import { type Item, type Query, type QueryState, type RillbaseError, stringify } from "rillbase";
import { type Flashes, type Marked, type Marks, noteFlashes } from "../../../ui/flashes";
import { keyOf } from "./values";

/** The largest window that the server watches has 10,000 rows. */
const WINDOWS = [250, 1_000, 4_000, 10_000] as const;
export const MAX_ROWS = WINDOWS[WINDOWS.length - 1] ?? 0;

export type Row = Item<Record<string, unknown>>;

export interface LiveDocuments {
  readonly items: readonly Row[];
  readonly state: QueryState;
  readonly hasAnswer: boolean;
  readonly error: RillbaseError | null;
  /** How often each row has changed while it was visible. */
  readonly flashes: ReadonlyMap<string, number>;
  readonly grow: () => void;
  /** Subscribes again after the subscription has ended. */
  readonly again: () => void;
  readonly isComplete: boolean;
}

interface Shown {
  readonly items: readonly Row[];
  readonly state: QueryState;
  readonly hasAnswer: boolean;
  readonly error: RillbaseError | null;
}

const NOTHING: Shown = { items: [], state: "connecting", hasAnswer: false, error: null };

/** Watches a query in windows that grow; the first one has the row that is shown first. */
export function useLiveDocuments(query: Query | null, firstRow = 0): LiveDocuments {
  const key = query?.key ?? "";
  const [step, setStep] = useState(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another query starts over.
  useEffect(() => setStep(0), [key]);
  const least = WINDOWS.findIndex((size) => size > firstRow);
  const limit = WINDOWS[Math.min(Math.max(step, least), WINDOWS.length - 1)] ?? WINDOWS[0];
  const shown = useSnapshots(query?.limit(limit) ?? null, key);
  const loaded = shown.items.length;
  const grow = useCallback(() => {
    if (loaded >= limit) setStep((at) => Math.min(at + 1, WINDOWS.length - 1));
  }, [loaded, limit]);
  return { ...shown, grow, isComplete: loaded < limit };
}

/** Subscribes to a query with its own window. */
export function useWatched(query: Query<Record<string, unknown>>): LiveDocuments {
  const shown = useSnapshots(query as Query, query.key);
  return { ...shown, grow: doNothing, isComplete: true };
}

const doNothing = () => {};

/** Follows a query. What is loaded stays in view until there is an answer, unless `origin` changes. */
function useSnapshots(
  query: Query | null,
  origin: string,
): Shown & Pick<LiveDocuments, "flashes" | "again"> {
  const [shown, setShown] = useState(NOTHING);
  const [attempt, setAttempt] = useState(0);
  const again = useCallback(() => setAttempt((number) => number + 1), []);
  const flashes = useRef<Flashes>(new Map());
  const marks = useRef<Marks>(new Map());
  // biome-ignore lint/correctness/useExhaustiveDependencies: another origin starts over.
  useEffect(() => {
    setShown(NOTHING);
    marks.current = new Map();
    flashes.current = new Map();
  }, [origin]);
  const key = query?.key;
  // biome-ignore lint/correctness/useExhaustiveDependencies: `key` stands for the query; each attempt subscribes again.
  useEffect(
    () =>
      query?.onSnapshot((snapshot) => {
        const { state, hasAnswer, error } = snapshot;
        const items = snapshot.items as readonly Row[];
        if (!hasAnswer && error === null) {
          setShown((before) => ({ ...before, state }));
          return;
        }
        noteFlashes(items, markOf, ({ id }) => keyOf(id), marks.current, flashes.current);
        setShown({ items, state, hasAnswer, error });
      }),
    [key, attempt],
  );
  return { ...shown, flashes: flashes.current, again };
}

/** Rows that combine several documents have no version: their content identifies a change. */
function markOf({ version, document, isPending }: Row): Marked["mark"] {
  return isPending ? null : (version ?? stringify(document));
}
