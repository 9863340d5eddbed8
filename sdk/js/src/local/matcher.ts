/**
 * Matches documents with a filter. `undefined` means that only the server can decide.
 *
 * This is used only for the local view of pending writes: the server decides every answer. So it
 * handles the common operators, and returns `undefined` for all others.
 */

import { compare, isSameKind, numberOf } from "./compare.js";
import { isPlain, type Plain, valuesAt } from "./paths.js";

export type Verdict = boolean | undefined;

export function matches(filter: Plain, document: unknown): Verdict {
  return all(Object.entries(filter), ([name, condition]) => clause(name, condition, document));
}

function clause(name: string, condition: unknown, document: unknown): Verdict {
  if (!name.startsWith("$")) {
    const values = valuesAt(document, name);
    // An element of a list that is a list itself counts as a whole, unless its number is a name.
    const isElement = /\.\d+$/.test(name) && values.some(Array.isArray);
    return isElement ? undefined : field(values, condition);
  }
  if (name === "$comment") return true;
  if (!Array.isArray(condition)) return undefined;
  const each = (part: unknown) => (isPlain(part) ? matches(part, document) : undefined);
  switch (name) {
    case "$and":
      return all(condition, each);
    case "$or":
      return any(condition, each);
    case "$nor":
      return not(any(condition, each));
    default:
      return undefined;
  }
}

function field(values: readonly unknown[], condition: unknown): Verdict {
  if (condition instanceof RegExp) return undefined;
  if (!isPlain(condition) || !Object.keys(condition).some((name) => name.startsWith("$"))) {
    return equals(values, condition);
  }
  return all(Object.entries(condition), ([name, operand]) => operator(name, values, operand));
}

function operator(name: string, values: readonly unknown[], operand: unknown): Verdict {
  switch (name) {
    case "$eq":
      return equals(values, operand);
    case "$ne":
      return not(equals(values, operand));
    case "$in":
      return Array.isArray(operand) ? any(operand, (one) => equals(values, one)) : undefined;
    case "$nin":
      return not(operator("$in", values, operand));
    case "$exists":
      return values.length > 0 === Boolean(operand);
    case "$size":
      return values.some((value) => Array.isArray(value) && value.length === numberOf(operand));
    case "$not":
      return isPlain(operand) ? not(field(values, operand)) : undefined;
    default:
      return ranged(name, values, operand);
  }
}

const RANGES: Record<string, (order: number) => boolean> = {
  $lt: (order) => order < 0,
  $lte: (order) => order <= 0,
  $gt: (order) => order > 0,
  $gte: (order) => order >= 0,
};

/** Comparisons hold between values of one kind only; an array is tried element by element. */
function ranged(name: string, values: readonly unknown[], operand: unknown): Verdict {
  const holds = Object.hasOwn(RANGES, name) ? RANGES[name] : undefined;
  if (holds === undefined || operand === null || typeof operand === "object") {
    return operand instanceof Date && holds !== undefined
      ? candidates(values).some((value) => value instanceof Date && holds(compare(value, operand)))
      : undefined;
  }
  return candidates(values).some((value) => {
    return isSameKind(value, operand) && holds(compare(value, operand));
  });
}

function equals(values: readonly unknown[], operand: unknown): Verdict {
  if (operand instanceof RegExp) return undefined;
  if (operand === null || operand === undefined) {
    return values.length === 0 || candidates(values).some((value) => value === null);
  }
  return candidates(values).some((value) => {
    return isSameKind(value, operand) && compare(value, operand) === 0;
  });
}

/** A field with a list matches as a whole and by each of its elements. */
function candidates(values: readonly unknown[]): unknown[] {
  return values.flatMap((value) => (Array.isArray(value) ? [value, ...value] : [value]));
}

function not(verdict: Verdict): Verdict {
  return verdict === undefined ? undefined : !verdict;
}

function all<T>(parts: readonly T[], judge: (part: T) => Verdict): Verdict {
  let verdict: Verdict = true;
  for (const part of parts) {
    const outcome = judge(part);
    if (outcome === false) return false;
    if (outcome === undefined) verdict = undefined;
  }
  return verdict;
}

function any<T>(parts: readonly T[], judge: (part: T) => Verdict): Verdict {
  return not(all(parts, (part) => not(judge(part))));
}
