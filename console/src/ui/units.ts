/** Quantities, formatted for people. */

const WHOLE = new Intl.NumberFormat("en");
const FRACTION = new Intl.NumberFormat("en", { maximumSignificantDigits: 6 });

/** A computed number, without insignificant digits. */
export function numberText(value: number): string {
  return (Number.isInteger(value) ? WHOLE : FRACTION).format(value);
}

/** A count with its noun, such as "1 document". */
export function counted(count: number, noun: string): string {
  return `${WHOLE.format(count)} ${noun}${count === 1 ? "" : "s"}`;
}

export function size(bytes: number): string {
  if (bytes < 1_024) return `${bytes} B`;
  if (bytes < 1_024 ** 2) return `${(bytes / 1_024).toFixed(1)} KiB`;
  if (bytes < 1_024 ** 3) return `${(bytes / 1_024 ** 2).toFixed(1)} MiB`;
  return `${(bytes / 1_024 ** 3).toFixed(1)} GiB`;
}
