/** Rates over the last hour, from sums by minute. */

import type { Overview } from "../../api/types";

const MINUTE_MS = 60_000;
/** A minute's sums are complete this long after its end. */
const SETTLE_MS = 30_000;
export const MINUTES = 60;

export interface Rates {
  /** Per second, minute by minute, the oldest first. */
  readonly values: readonly number[];
  readonly latest: number;
  readonly peak: number;
}

/** Returns the rates of the hour that ends with the last complete minute. */
export function ratesOf(
  { activity, at }: Pick<Overview, "activity" | "at">,
  figure: "writes" | "events",
): Rates {
  const end = Math.floor((Date.parse(at) - SETTLE_MS) / MINUTE_MS);
  const sums = new Map(
    activity.map((minute) => [Math.floor(Date.parse(minute.at) / MINUTE_MS), minute[figure]]),
  );
  const values = Array.from(
    { length: MINUTES },
    (_, index) => (sums.get(end - MINUTES + index) ?? 0) / 60,
  );
  return { values, latest: values[MINUTES - 1] ?? 0, peak: Math.max(...values) };
}

const ONE_DIGIT = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const NO_DIGIT = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** Returns a rate with the digits that matter: `0.3`, `12`; what is less than 0.1 is not zero. */
export function rateText(rate: number): string {
  if (rate > 0 && rate < 0.1) return "< 0.1";
  return (rate < 10 ? ONE_DIGIT : NO_DIGIT).format(rate);
}
