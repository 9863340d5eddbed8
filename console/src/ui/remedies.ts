/** What to do about an error, from docs/errors.md, which is read when the console is built. */

import page from "../../../docs/errors.md?raw";

export interface Remedy {
  readonly when: string;
  readonly what: string;
}

/** A row of one of the page's tables: the code, its status or none, when it arises, what to do. */
const ROW = /^\| `(\w+)` \|(?: \d+ \|)? (.+?) \| (.+?) \|$/gm;

const REMEDIES: ReadonlyMap<string, Remedy> = new Map(
  [...page.matchAll(ROW)].map(([, code = "", when = "", what = ""]) => [code, { when, what }]),
);

export function remedyOf(code: string): Remedy | undefined {
  return REMEDIES.get(code);
}
