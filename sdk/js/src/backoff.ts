/** How long to wait before a retry: longer each time, and with jitter. */

export interface BackoffOptions {
  /** The average wait before the second attempt. */
  readonly firstMs: number;
  /** The longest wait. */
  readonly maxMs: number;
}

export const RECONNECT: BackoffOptions = { firstMs: 250, maxMs: 20_000 };
export const RETRY: BackoffOptions = { firstMs: 100, maxMs: 5_000 };

/**
 * Returns the wait after so many failures in a row, `random` being in [0, 1). The wait is between
 * half and one and a half times the doubling step, so that thousands of clients of a restarted
 * server do not reconnect at the same time.
 */
export function backoffMs(failures: number, random: number, options = RECONNECT): number {
  const doublings = Math.min(Math.max(failures - 1, 0), 30);
  const step = Math.min(options.firstMs * 2 ** doublings, options.maxMs);
  return Math.min(step * (0.5 + random), options.maxMs);
}
