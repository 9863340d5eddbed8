/** Dotted paths into documents, as in queries and updates. */

export type Plain = Record<string, unknown>;

export function isPlain(value: unknown): value is Plain {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** Returns every value that a path leads to; through arrays of objects there may be several. */
export function valuesAt(document: unknown, path: string): unknown[] {
  return follow(document, path.split("."), 0);
}

function follow(value: unknown, steps: readonly string[], at: number): unknown[] {
  const step = steps[at];
  if (step === undefined) return [value];
  if (Array.isArray(value)) {
    const element = /^\d+$/.test(step) ? value[Number(step)] : undefined;
    const direct = element === undefined ? [] : follow(element, steps, at + 1);
    const through = value.filter(isPlain).flatMap((item) => follow(item, steps, at));
    return [...direct, ...through];
  }
  if (!isPlain(value) || !Object.hasOwn(value, step)) return [];
  return follow(value[step], steps, at + 1);
}

/**
 * Returns a copy of the document in which `change` was applied to the value at a path of objects;
 * undefined where the path leads through something else, or the change is not certain. A change
 * that returns `ABSENT` removes the value.
 */
export function changedAt(
  document: Plain,
  path: string,
  change: (value: unknown) => unknown,
): Plain | undefined {
  const [step = "", ...rest] = path.split(".");
  if (step === "" || step.startsWith("$") || step === "__proto__") return undefined;
  const held = Object.hasOwn(document, step) ? document[step] : undefined;
  const next = rest.length === 0 ? change(held) : inside(held, rest, change);
  if (next === undefined) return undefined;
  const copy = { ...document };
  if (next === ABSENT) delete copy[step];
  else copy[step] = next;
  return copy;
}

/** A placeholder for a missing value. */
export const ABSENT: unique symbol = Symbol("absent");

function inside(
  held: unknown,
  rest: readonly string[],
  change: (value: unknown) => unknown,
): Plain | undefined {
  if (held !== undefined && !isPlain(held)) return undefined;
  return changedAt(held ?? {}, rest.join("."), change);
}
