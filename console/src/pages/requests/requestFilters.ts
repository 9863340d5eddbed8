/** The filters of the request log: their names in the page's address, and what the API takes. */

import type { Filters } from "../../shell/useFilters";

export const NAMES = [
  "method",
  "route",
  "status",
  "min_duration_ms",
  "request_id",
  "actor",
  "code",
  "period",
  "since",
  "until",
] as const;

export type RequestFilters = Filters<(typeof NAMES)[number]>;

export const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "WS"] as const;

/** Periods up to now, in minutes. Without one, the log is shown as far as it reaches. */
export const PERIODS: readonly (readonly [minutes: string, title: string])[] = [
  ["5", "Last 5 minutes"],
  ["60", "Last hour"],
  ["360", "Last 6 hours"],
];

/** The period between `since` and `until`. */
export const CUSTOM = "custom";

const MINUTE_MS = 60_000;

/** Returns the parameters of the API for filters that were chosen at `now`. */
export function asParameters(chosen: RequestFilters, now: number) {
  const { period, since, until, ...filters } = chosen;
  if (period === CUSTOM) {
    return { ...filters, ...(since && { since }), ...(until && { until }) };
  }
  const minutes = Number(period);
  if (!(minutes > 0)) return filters;
  return { ...filters, since: new Date(now - minutes * MINUTE_MS).toISOString() };
}

/** What can be sent to the API while it is being typed. */
export const PATTERNS = {
  status: /^([1-5]xx|[1-4]?\d{3})?$/,
  min_duration_ms: /^(\d{1,9}(\.\d{1,3})?)?$/,
} as const;
