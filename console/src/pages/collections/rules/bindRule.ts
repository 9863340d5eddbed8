/**
 * Replaces the claims of a rule, as the server does, to try a rule that is not saved. Below a field
 * a claim is the operand of `$eq`, in an expression that of `$literal`; a missing one makes the
 * rule false.
 */

import { isArray, isObject, type Json, type JsonObject } from "../../../ui/definition/exactJson";

const CONNECTIVES = ["$and", "$or", "$nor"];

class MissingClaim extends Error {}

/** Returns true, false, or the filter that a rule is for these claims. */
export function bindRule(rule: Json | undefined, claims: JsonObject): boolean | JsonObject {
  if (!isObject(rule)) return rule === true;
  try {
    return bindFilter(rule, claims);
  } catch (error) {
    if (error instanceof MissingClaim) return false;
    throw error;
  }
}

function bindFilter(filter: JsonObject, claims: JsonObject): JsonObject {
  return mapMembers(filter, (name, value) => {
    if (CONNECTIVES.includes(name) && isArray(value))
      return value.map((child) => (isObject(child) ? bindFilter(child, claims) : child));
    if (name === "$expr")
      return bindLiterals(value, (claim) => ({ $literal: claimValue(claims, claim) }));
    return name.startsWith("$") ? value : bindField(value, claims);
  });
}

function bindField(value: Json, claims: JsonObject): Json {
  const claim = claimOf(value);
  if (claim !== null) return { $eq: claimValue(claims, claim) };
  if (!isObject(value) || !isOperators(value)) return bindValue(value, claims);
  return mapMembers(value, (name, operand) => {
    if (name !== "$elemMatch" || !isObject(operand)) return bindValue(operand, claims);
    return isOperators(operand) ? bindField(operand, claims) : bindFilter(operand, claims);
  });
}

function bindValue(value: Json, claims: JsonObject): Json {
  return bindLiterals(value, (claim) => claimValue(claims, claim));
}

function bindLiterals(value: Json, insert: (claim: string) => Json): Json {
  const claim = claimOf(value);
  if (claim !== null) return insert(claim);
  if (isArray(value)) return value.map((item) => bindLiterals(item, insert));
  return isObject(value)
    ? mapMembers(value, (_name, member) => bindLiterals(member, insert))
    : value;
}

function mapMembers(object: JsonObject, change: (name: string, value: Json) => Json): JsonObject {
  return Object.fromEntries(
    Object.entries(object).map(([name, value]) => [name, change(name, value)]),
  );
}

function isOperators(value: JsonObject): boolean {
  return Object.keys(value)[0]?.startsWith("$") ?? false;
}

function claimOf(value: Json): string | null {
  if (!isObject(value) || Object.keys(value).length !== 1) return null;
  return typeof value.$auth === "string" ? value.$auth : null;
}

function claimValue(claims: JsonObject, path: string): Json {
  const value = path
    .split(".")
    .reduce<Json | undefined>(
      (at, name) => (isObject(at) && Object.hasOwn(at, name) ? at[name] : undefined),
      claims,
    );
  if (value === undefined) throw new MissingClaim();
  return value;
}
