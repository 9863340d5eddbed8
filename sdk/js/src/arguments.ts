/**
 * Argument checks. TypeScript detects these mistakes by types; in plain JavaScript the call that
 * contains the mistake throws, instead of returning an empty result later.
 */

/** Throws if an option has an unknown name. */
export function checkOptions(call: string, value: object, names: readonly string[]): void {
  for (const name of Object.keys(value)) {
    if (!names.includes(name)) throw unknown(`${call} has no option`, name, names);
  }
}

/** Throws unless a string is one of the choices. */
export function checkChoice(what: string, value: unknown, choices: readonly string[]): void {
  if (typeof value !== "string" || !choices.includes(value)) throw unknown(what, value, choices);
}

/** Throws unless it is a non-empty string. */
export function checkName(what: string, value: unknown): void {
  if (typeof value !== "string" || value === "") {
    throw new TypeError(`${what} must be a non-empty string, not ${shown(value)}.`);
  }
}

/** Throws unless it is a whole number, 0 or more. */
export function checkCount(what: string, value: unknown): void {
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 0) {
    throw new TypeError(`${what} must be a whole number, 0 or more, not ${shown(value)}.`);
  }
}

/** Throws unless it is an object of names and values. */
export function checkObject(what: string, value: unknown): void {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new TypeError(`${what} must be an object, not ${shown(value)}.`);
  }
}

function unknown(what: string, value: unknown, choices: readonly string[]): TypeError {
  const valid = choices.map((choice) => `"${choice}"`).join(", ");
  return new TypeError(`${what} ${shown(value)}. Valid: ${valid}.`);
}

function shown(value: unknown): string {
  if (typeof value === "string") return `"${value}"`;
  if (value === null || typeof value !== "object") return String(value);
  return Array.isArray(value) ? "an array" : "an object";
}
