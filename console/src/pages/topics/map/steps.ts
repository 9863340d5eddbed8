/** Round numbers for lines and scales. */

const FACTORS = [1, 2, 5, 10] as const;

/** The nearest number of the form 1, 2 or 5 times a power of ten that is not below, or above. */
export function roundStep(value: number, direction: "up" | "down"): number {
  const power = 10 ** Math.floor(Math.log10(value));
  const factor =
    direction === "up"
      ? FACTORS.find((each) => each * power >= value)
      : FACTORS.findLast((each) => each * power <= value);
  return Number(((factor ?? 1) * power).toPrecision(1));
}
