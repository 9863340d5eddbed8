/**
 * The result of an update, as far as a client can predict it: `undefined` where only the server can
 * (positions in arrays, conditions, its own clock).
 */

import { compare, numberOf } from "./compare.js";
import { ABSENT, changedAt, isPlain, type Plain, valuesAt } from "./paths.js";

/** One operator: the value that is there, and the operand, become the value that will be. */
type Operator = (held: unknown, operand: unknown) => unknown;

const OPERATORS: Record<string, Operator> = {
  $set: (_held, operand) => operand,
  $unset: () => ABSENT,
  $inc: (held, operand) => calculated(held, operand, 0, (a, b) => a + b),
  $mul: (held, operand) => calculated(held, operand, 0, (a, b) => a * b),
  $min: (held, operand) => (held === undefined || compare(operand, held) < 0 ? operand : held),
  $max: (held, operand) => (held === undefined || compare(operand, held) > 0 ? operand : held),
  $push: (held, operand) => {
    if (isPlain(operand) && "$each" in operand) return undefined;
    return list(held, (items) => [...items, operand]);
  },
  $addToSet: (held, operand) => {
    if (isPlain(operand) && "$each" in operand) return undefined;
    return list(held, (items) => {
      return items.some((item) => compare(item, operand) === 0) ? items : [...items, operand];
    });
  },
  $pop: (held, operand) => {
    return list(held, (items) => (operand === -1 ? items.slice(1) : items.slice(0, -1)));
  },
  $pull: (held, operand) => {
    if (isPlain(operand)) return undefined;
    return list(held, (items) => items.filter((item) => compare(item, operand) !== 0));
  },
};

/** Applies an update of operators. */
export function updated(document: Plain, update: Plain): Plain | undefined {
  let current: Plain | undefined = document;
  for (const [name, operands] of Object.entries(update)) {
    const operator = Object.hasOwn(OPERATORS, name) ? OPERATORS[name] : undefined;
    if (operator === undefined || !isPlain(operands)) return undefined;
    for (const [path, operand] of Object.entries(operands)) {
      if (name === "$unset" && valuesAt(current, path).length === 0) continue;
      current = current && changedAt(current, path, (held) => operator(held, operand));
    }
  }
  return current;
}

/** Applies a merge patch (RFC 7396). */
export function merged(document: Plain, patch: Plain): Plain {
  const copy = { ...document };
  for (const [name, value] of Object.entries(patch)) {
    if (name === "__proto__") continue;
    const held = copy[name];
    if (value === null) delete copy[name];
    else if (isPlain(value)) copy[name] = merged(isPlain(held) ? held : {}, value);
    else if (value !== undefined) copy[name] = value;
  }
  return copy;
}

/** Only plain numbers are calculated here: the server's rules for the others are its own. */
function calculated(
  held: unknown,
  operand: unknown,
  absent: number,
  calculate: (a: number, b: number) => number,
): unknown {
  const before = held === undefined ? absent : held;
  if (typeof before !== "number" || typeof operand !== "number") return undefined;
  const after = calculate(numberOf(before) ?? 0, operand);
  return Number.isFinite(after) ? after : undefined;
}

function list(held: unknown, change: (items: readonly unknown[]) => unknown): unknown {
  if (held === undefined) return change([]);
  return Array.isArray(held) ? change(held) : undefined;
}
