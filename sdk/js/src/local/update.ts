/**
 * The result of an update, as far as a client can predict it: `undefined` where only the server can
 * (positions in arrays, conditions, its own clock).
 */

import { compare, numberOf } from "./compare.js";
import { ABSENT, changedAt, isPlain, type Plain, valuesAt } from "./paths.js";

/** One operator: computes the new value from the current one and the operand. */
type Operator = (current: unknown, operand: unknown) => unknown;

const OPERATORS: Record<string, Operator> = {
  $set: (_current, operand) => operand,
  $unset: () => ABSENT,
  $inc: (current, operand) => calculated(current, operand, 0, (a, b) => a + b),
  $mul: (current, operand) => calculated(current, operand, 0, (a, b) => a * b),
  $min: (current, operand) =>
    current === undefined || compare(operand, current) < 0 ? operand : current,
  $max: (current, operand) =>
    current === undefined || compare(operand, current) > 0 ? operand : current,
  $push: (current, operand) => {
    if (isPlain(operand) && "$each" in operand) return undefined;
    return list(current, (items) => [...items, operand]);
  },
  $addToSet: (current, operand) => {
    if (isPlain(operand) && "$each" in operand) return undefined;
    return list(current, (items) => {
      return items.some((item) => compare(item, operand) === 0) ? items : [...items, operand];
    });
  },
  $pop: (current, operand) => {
    return list(current, (items) => (operand === -1 ? items.slice(1) : items.slice(0, -1)));
  },
  $pull: (current, operand) => {
    if (isPlain(operand)) return undefined;
    return list(current, (items) => items.filter((item) => compare(item, operand) !== 0));
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
      current = current && changedAt(current, path, (value) => operator(value, operand));
    }
  }
  return current;
}

/** Applies a merge patch (RFC 7396). */
export function merged(document: Plain, patch: Plain): Plain {
  const copy = { ...document };
  for (const [name, value] of Object.entries(patch)) {
    if (name === "__proto__") continue;
    const current = copy[name];
    if (value === null) delete copy[name];
    else if (isPlain(value)) copy[name] = merged(isPlain(current) ? current : {}, value);
    else if (value !== undefined) copy[name] = value;
  }
  return copy;
}

/** Only plain numbers are computed here: the server has its own rules for the others. */
function calculated(
  current: unknown,
  operand: unknown,
  absent: number,
  calculate: (a: number, b: number) => number,
): unknown {
  const before = current === undefined ? absent : current;
  if (typeof before !== "number" || typeof operand !== "number") return undefined;
  const after = calculate(numberOf(before) ?? 0, operand);
  return Number.isFinite(after) ? after : undefined;
}

function list(current: unknown, change: (items: readonly unknown[]) => unknown): unknown {
  if (current === undefined) return change([]);
  return Array.isArray(current) ? change(current) : undefined;
}
