/**
 * The rows that have changed while they were visible, which are highlighted.
 *
 * A row's mark differs when the row does: its version, or its content if it has none.
 */

import { useRef } from "react";

export interface Marked {
  readonly key: string;
  /** Null: as it stands for now, which is no news. */
  readonly mark: number | string | null;
}

/** How often each row has changed. */
export type Flashes = Map<string, number>;

/** More rows than a screenful at once are another window, not news. */
const MAX_NEW_ROWS = 50;

export type Marks = Map<string, Marked["mark"]>;

/**
 * Counts a flash for each row that differs from the one that was shown, and updates the marks of what
 * is shown. With thousands of rows, it is called for each change: it creates nothing for the others.
 */
export function noteFlashes<T>(
  rows: readonly T[],
  markOf: (row: T) => Marked["mark"],
  keyOf: (row: T) => string,
  marks: Marks,
  flashes: Flashes,
): void {
  const hadRows = marks.size > 0;
  const added: string[] = [];
  for (const row of rows) {
    const key = keyOf(row);
    const mark = markOf(row);
    const before = marks.get(key);
    if (before === mark && mark !== null) continue;
    if (before === undefined) added.push(key);
    else if (mark !== null) count(flashes, key);
    marks.set(key, mark);
  }
  if (hadRows && added.length <= MAX_NEW_ROWS) for (const key of added) count(flashes, key);
  if (marks.size > rows.length) forgetOthers(marks, new Set(rows.map(keyOf)));
}

function count(flashes: Flashes, key: string): void {
  flashes.set(key, (flashes.get(key) ?? 0) + 1);
}

function forgetOthers(marks: Marks, keys: ReadonlySet<string>): void {
  for (const key of marks.keys()) if (!keys.has(key)) marks.delete(key);
}

/** Notes the flashes of rows that are shown as they come. `origin` says what they are rows of. */
export function useFlashes(rows: readonly Marked[], origin: string): ReadonlyMap<string, number> {
  const noted = useRef({ origin, marks: new Map() as Marks, flashes: new Map() as Flashes });
  if (noted.current.origin !== origin) {
    noted.current = { origin, marks: new Map(), flashes: new Map() };
  }
  const { marks, flashes } = noted.current;
  noteFlashes(
    rows,
    ({ mark }) => mark,
    ({ key }) => key,
    marks,
    flashes,
  );
  return flashes;
}

/** Returns the class that lets a row flash. Switching between the two restarts the animation. */
export function flashClass(flashes: number): string {
  if (flashes === 0) return "";
  return flashes % 2 === 0 ? "flash-even" : "flash-odd";
}
