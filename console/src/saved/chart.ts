/** A chart as it is saved. */

import type { SavedChart } from "../api/types";
import type { ChartChoice } from "../ui/charts/chartData";

export function chartOf(saved: SavedChart | null): ChartChoice | null {
  if (saved === null) return null;
  const { type, x = null, y = null, series = null } = saved;
  return { type, x, y, series };
}
