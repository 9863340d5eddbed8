/** Relative times; the exact time is in the title. */

const UNITS: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ["year", 365 * 86_400],
  ["month", 30 * 86_400],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const exact = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
const clock = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
const JUST_NOW_S = 45;

/** A moment in the reader's time zone, in the same 24-hour form on every page. */
export function momentText(at: string | number | Date): string {
  return exact.format(new Date(at));
}

/** The time of day of a moment of today. */
export function clockText(at: Date): string {
  return clock.format(at);
}

export function Time({ at }: { readonly at: string | null }) {
  if (at === null) return <span className="soft">never</span>;
  return (
    <time dateTime={at} title={momentText(at)}>
      {ago(new Date(at))}
    </time>
  );
}

export function ago(moment: Date): string {
  const seconds = (moment.getTime() - Date.now()) / 1000;
  if (Math.abs(seconds) < JUST_NOW_S) return "just now";
  const [unit, size] = UNITS.find(([, least]) => Math.abs(seconds) >= least) ?? ["minute", 60];
  return relative.format(Math.round(seconds / size), unit);
}

/** A duration. */
export function duration(seconds: number): string {
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}
