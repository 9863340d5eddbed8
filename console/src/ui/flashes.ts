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

/** Counts a flash for each row that differs from the one that was shown; returns what is shown now. */
export function noteFlashes(
  rows: readonly Marked[],
  before: ReadonlyMap<string, Marked["mark"]>,
  flashes: Flashes,
): Map<string, Marked["mark"]> {
  const fresh = rows.filter(({ key }) => !before.has(key)).length;
  const showsNew = before.size > 0 && fresh <= MAX_NEW_ROWS;
  for (const { key, mark } of rows) {
    const isNew = !before.has(key);
    const isNews = isNew ? showsNew : mark !== null && before.get(key) !== mark;
    if (isNews) flashes.set(key, (flashes.get(key) ?? 0) + 1);
  }
  return new Map(rows.map(({ key, mark }) => [key, mark]));
}

/** Notes the flashes of rows that are shown as they come. `origin` says what they are rows of. */
export function useFlashes(rows: readonly Marked[], origin: string): ReadonlyMap<string, number> {
  const noted = useRef({ origin, rows: new Map<string, Marked["mark"]>(), flashes: new Map() });
  if (noted.current.origin !== origin) {
    noted.current = { origin, rows: new Map(), flashes: new Map() };
  }
  noted.current.rows = noteFlashes(rows, noted.current.rows, noted.current.flashes);
  return noted.current.flashes;
}

/** Returns the class that lets a row flash. Switching between the two restarts the animation. */
export function flashClass(flashes: number): string {
  if (flashes === 0) return "";
  return flashes % 2 === 0 ? "flash-even" : "flash-odd";
}
