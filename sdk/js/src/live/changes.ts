/** The changes of a query from the server, as an async iterator. */

import type { RillbaseError } from "../errors.js";
import type { LiveQuery, ServerUpdate } from "./live-query.js";
import type { Row } from "./view.js";

/** The whole result, or one change of it. */
export type QueryEvent<T> =
  | {
      /**
       * The whole answer: at the beginning, and when the reader was too slow for single changes.
       */
      readonly type: "result";
      readonly documents: readonly T[];
    }
  | {
      readonly type: "add" | "change" | "move";
      readonly id: unknown;
      readonly version: number | null;
      readonly document: T;
    }
  | {
      readonly type: "remove";
      readonly id: unknown;
      readonly version: number | null;
      readonly reason: "deleted" | "left" | null;
    };

/**
 * Maximum number of changes that wait for a slow reader; beyond it the whole answer replaces them.
 */
const MAX_WAITING = 1_000;

/** Yields the answer and then its changes. */
export async function* changesOf<T>(
  live: LiveQuery,
  signal: AbortSignal | undefined,
): AsyncGenerator<QueryEvent<T>, void> {
  let waiting: QueryEvent<T>[] = [];
  let error: RillbaseError | undefined;
  let wake = () => {};
  const take = (update: ServerUpdate) => {
    if (update.kind === "failed") error = update.error;
    else if (update.kind === "result") waiting = [resultOf<T>(update.rows)];
    else waiting.push(...update.changes.map((change) => eventOf<T>(change)));
    if (waiting.length > MAX_WAITING) waiting = [resultOf<T>(live.rows)];
    wake();
  };
  const stop = live.onUpdate(take);
  const aborted = () => wake();
  signal?.addEventListener("abort", aborted);
  try {
    while (signal?.aborted !== true) {
      const next = waiting.shift();
      if (next !== undefined) yield next;
      else if (error !== undefined) throw error;
      else {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    }
  } finally {
    signal?.removeEventListener("abort", aborted);
    stop();
  }
}

function resultOf<T>(rows: readonly Row[]): QueryEvent<T> {
  return { type: "result", documents: rows.map(({ document }) => document as T) };
}

function eventOf<T>(change: {
  readonly type: "add" | "change" | "move" | "remove";
  readonly row: Row;
  readonly reason?: "deleted" | "left";
}): QueryEvent<T> {
  const { id, version, document } = change.row;
  if (change.type === "remove") {
    return { type: "remove", id, version, reason: change.reason ?? null };
  }
  return { type: change.type, id, version, document: document as T };
}
