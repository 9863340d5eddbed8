/** What the form shows of access rules, and how it changes them. */

import { isObject, isSame, type Json, type JsonObject } from "../../../ui/definition/exactJson";

export const ACTIONS = [
  ["read", "Read", "Which documents queries and subscriptions return"],
  ["create", "Create", "Which new documents are accepted"],
  ["update", "Update", "Which documents can be changed; applies before and after the change"],
  ["delete", "Delete", "Which documents can be deleted"],
] as const;

export type Action = (typeof ACTIONS)[number][0];

export const AUDIENCES = [
  ["nobody", "Nobody"],
  ["everyone", "Everyone"],
  ["users", "Signed-in users"],
  ["owner", "The owner"],
  ["filter", "A custom filter"],
] as const;

export type Audience = (typeof AUDIENCES)[number][0];

/** A rule whose claim is missing is false, so this one holds for every token with a subject. */
const SIGNED_IN: JsonObject = { $expr: { $ne: [{ $auth: "sub" }, null] } };
const OWNER: JsonObject = { owner: { $auth: "sub" } };

/** Returns whom a rule allows; null if the server rejects such a rule. */
export function audienceOf(rule: Json | undefined): Audience | null {
  if (rule === undefined || rule === false) return "nobody";
  if (rule === true) return "everyone";
  if (!isObject(rule)) return null;
  if (isSame(rule, SIGNED_IN)) return "users";
  return ownershipOf(rule) === null ? "filter" : "owner";
}

export interface Ownership {
  readonly field: string;
  readonly claim: string;
}

/** Returns the field that must be equal to a claim, if that is all that a rule requires. */
export function ownershipOf(rule: JsonObject): Ownership | null {
  const [[field, operand] = [], ...others] = Object.entries(rule);
  if (field === undefined || field.startsWith("$") || others.length > 0) return null;
  if (!isObject(operand)) return null;
  const { $auth: claim, ...rest } = operand;
  return typeof claim === "string" && Object.keys(rest).length === 0 ? { field, claim } : null;
}

export function ownershipRule({ field, claim }: Ownership): JsonObject {
  return { [field]: { $auth: claim } };
}

/** Returns a rule for an audience. A custom filter starts from the current rule, never from `{}`. */
export function ruleFor(audience: Audience, before: Json | undefined): Json {
  switch (audience) {
    case "nobody":
      return false;
    case "everyone":
      return true;
    case "users":
      return SIGNED_IN;
    case "owner":
      return OWNER;
    case "filter":
      return isObject(before) ? before : OWNER;
  }
}

/** Returns the members that are not the rule of an action, or are not valid rules. */
export function rulesInJson(rules: JsonObject): readonly string[] {
  return Object.entries(rules)
    .filter(
      ([name, rule]) => !ACTIONS.some(([action]) => action === name) || audienceOf(rule) === null,
    )
    .map(([name]) => name);
}
