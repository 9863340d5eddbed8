/**
 * Argument checks. TypeScript detects these mistakes by types; in plain JavaScript the call that
 * contains the mistake throws, instead of returning an empty result later.
 */

/** Throws unless the options have only known names. */
export function checkOptions(call: string, given: object, names: readonly string[]): void {
  for (const name of Object.keys(given)) {
    if (!names.includes(name)) throw unknown(`${call} has no option`, name, names);
  }
}

/** Throws unless a text is one of the choices. */
export function checkChoice(what: string, given: unknown, choices: readonly string[]): void {
  if (typeof given !== "string" || !choices.includes(given)) throw unknown(what, given, choices);
}

/** Throws unless it is a text with something in it. */
export function checkName(what: string, given: unknown): void {
  if (typeof given !== "string" || given === "") {
    throw new TypeError(`${what} must be a non-empty string, not ${shown(given)}.`);
  }
}

/** Throws unless it is a whole number from 0 on. */
export function checkCount(what: string, given: unknown): void {
  if (typeof given !== "number" || !Number.isSafeInteger(given) || given < 0) {
    throw new TypeError(`${what} must be a whole number, 0 or more, not ${shown(given)}.`);
  }
}

/** Throws unless it is an object of names and values. */
export function checkObject(what: string, given: unknown): void {
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw new TypeError(`${what} must be an object, not ${shown(given)}.`);
  }
}

function unknown(what: string, given: unknown, choices: readonly string[]): TypeError {
  const valid = choices.map((choice) => `"${choice}"`).join(", ");
  return new TypeError(`${what} ${shown(given)}. Valid: ${valid}.`);
}

function shown(given: unknown): string {
  if (typeof given === "string") return `"${given}"`;
  if (given === null || typeof given !== "object") return String(given);
  return Array.isArray(given) ? "an array" : "an object";
}
