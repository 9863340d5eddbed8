/** The fields that the grid shows, and their widths. */

import type { Row } from "./useLiveDocuments";
import { cellLength } from "./values";

export interface Column {
  readonly path: string;
  readonly width: number;
}

const MAX_COLUMNS = 40;
const SAMPLED_ROWS = 60;
const CHAR_PX = 7.6;
const PADDING_PX = 30;
const MIN_PX = 84;
const MAX_PX = 320;

/**
 * Returns `_id`, then the schema's fields, then those of the first rows, the common ones first;
 * none that is shown below the rows.
 */
export function columnsOf(
  rows: readonly Row[],
  schema: Record<string, unknown> | null,
  nested: readonly string[] = [],
): Column[] {
  const sample = rows.slice(0, SAMPLED_ROWS);
  const properties = schema?.properties;
  const declared =
    typeof properties === "object" && properties !== null ? Object.keys(properties) : [];
  const counts = new Map<string, number>();
  for (const { document } of sample) {
    for (const name of Object.keys(document)) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const known = new Set(["_id", ...declared]);
  const others = [...counts.keys()]
    .filter((name) => !known.has(name))
    .sort((a, b) => (counts.get(b) ?? 0) - (counts.get(a) ?? 0));
  const names = ["_id", ...declared.filter((name) => name !== "_id"), ...others];
  const own = names.filter((name) => !nested.includes(name));
  return own.slice(0, MAX_COLUMNS).map((path) => ({ path, width: widthOf(path, sample) }));
}

function widthOf(path: string, sample: readonly Row[]): number {
  const lengths = sample.map(({ document }) => cellLength(document[path])).sort((a, b) => a - b);
  // The longest tenth of the values may be truncated.
  const usual = lengths[Math.floor(lengths.length * 0.9)] ?? 0;
  const width = Math.max(usual, path.length + 3) * CHAR_PX + PADDING_PX;
  return Math.round(Math.min(MAX_PX, Math.max(MIN_PX, width)));
}
