/** Why an automatic index has its technique, in words. */

import type { Index } from "../../api/types";
import { ago } from "../../ui/Time";
import { numberText } from "../../ui/units";

type Advice = NonNullable<Index["advice"]>;

/** How an index was used, and which technique suits that. */
export function adviceText(advice: Advice, inUse: Index["technique_in_use"]): string {
  return `${usageText(advice.use)} ${resultText(advice, inUse)}`;
}

function usageText({ lookups, newest, ordered, writes }: Advice["use"]): string {
  const share = lookups > 0 ? ` (${percent(newest / lookups)} for the newest documents)` : "";
  const sorts = ordered > 0 ? `, ${numberText(ordered)} sorts` : "";
  return `In one hour: ${numberText(lookups)} lookups${share}${sorts}, ${numberText(writes)} writes.`;
}

function resultText({ technique, gain, since }: Advice, inUse: Index["technique_in_use"]): string {
  if (technique === inUse) return `A ${technique} index suits this.`;
  const comparison = `A ${technique} index would be about ${gain.toFixed(1)} times as fast`;
  return since === null
    ? `${comparison}, which is not enough to rebuild it.`
    : `${comparison} (first measured ${ago(new Date(since))}). After 24 hours, it is rebuilt.`;
}

function percent(share: number): string {
  return `${Math.round(100 * share)} %`;
}
