/** Time and randomness, passed in so that tests can control them. */

export type Timer = ReturnType<typeof setTimeout> | number;

/** Time and randomness, which tests replace. */
export interface Clock {
  now(): number;
  random(): number;
  after(ms: number, act: () => void): Timer;
  cancel(timer: Timer | undefined): void;
}

export const REAL_CLOCK: Clock = {
  now: () => Date.now(),
  random: () => Math.random(),
  after: (ms, act) => setTimeout(act, ms),
  cancel: (timer) => clearTimeout(timer),
};
