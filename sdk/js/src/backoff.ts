/** How long to wait before the next attempt: longer each time, and never in step with others. */

export interface BackoffOptions {
  /** Before the second attempt, on average. */
  readonly firstMs: number;
  /** Never more than this. */
  readonly maxMs: number;
}

export const RECONNECT: BackoffOptions = { firstMs: 250, maxMs: 20_000 };
export const RETRY: BackoffOptions = { firstMs: 100, maxMs: 5_000 };

/**
 * Returns the wait after so many failures in a row, `random` being in [0, 1). The wait lies
 * anywhere between half and one and a half times the doubling step, so that thousands of clients
 * of a server that restarts do not come back together.
 */
export function backoffMs(failures: number, random: number, options = RECONNECT): number {
  const doublings = Math.min(Math.max(failures - 1, 0), 30);
  const step = Math.min(options.firstMs * 2 ** doublings, options.maxMs);
  return Math.min(step * (0.5 + random), options.maxMs);
}
