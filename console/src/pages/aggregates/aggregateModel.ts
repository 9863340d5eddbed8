/** What the form shows of an aggregate's definition, and how it changes it. */

import {
  isArray,
  isObject,
  isTextList,
  type Json,
  type JsonObject,
  renameMember,
  setMember,
  withMember,
  withoutMember,
} from "../../ui/definition/exactJson";

export const OPS = [
  ["count", "count"],
  ["sum", "sum"],
  ["avg", "average"],
  ["min", "minimum"],
  ["max", "maximum"],
  ["distinct", "distinct values"],
  ["quantiles", "quantiles"],
  ["top", "most frequent values"],
] as const;

export type Op = (typeof OPS)[number][0];

/** The members that each operator takes. */
const MEMBERS: Readonly<Record<Op, readonly string[]>> = {
  count: [],
  sum: ["field", "type", "scale"],
  avg: ["field", "type", "scale"],
  min: ["field"],
  max: ["field"],
  distinct: ["field"],
  quantiles: ["field", "quantiles", "accuracy"],
  top: ["field", "k"],
};

export const NUMBER_TYPES = [
  ["double", "double"],
  ["int", "integer"],
  ["decimal", "decimal"],
] as const;

export function opOf(measure: JsonObject): Op | null {
  return OPS.map(([op]) => op).find((op) => op === measure.op) ?? null;
}

export function takes(measure: JsonObject, member: string): boolean {
  const op = opOf(measure);
  return op !== null && MEMBERS[op].includes(member);
}

/** Changes the operator and drops the members that the new one does not take. */
export function withOp(measure: JsonObject, op: Op): JsonObject {
  const kept = Object.entries(measure).filter(
    ([name]) => name === "op" || MEMBERS[op].includes(name),
  );
  const changed = withMember(Object.fromEntries(kept), "op", op);
  return MEMBERS[op].includes("field") && changed.field === undefined
    ? withMember(changed, "field", "value")
    : changed;
}

export function dimensionsOf(definition: JsonObject): readonly string[] {
  return isTextList(definition.dimensions) ? definition.dimensions : [];
}

export function measuresOf(definition: JsonObject): JsonObject {
  return isObject(definition.measures) ? definition.measures : {};
}

export function rollupsOf(definition: JsonObject): readonly (readonly string[])[] {
  const { rollups } = definition;
  return isArray(rollups) && rollups.every(isTextList) ? rollups : [];
}

export function setMeasure(definition: JsonObject, name: string, measure: JsonObject): JsonObject {
  return withMember(definition, "measures", withMember(measuresOf(definition), name, measure));
}

export function renameMeasure(definition: JsonObject, from: string, to: string): JsonObject {
  return withMember(definition, "measures", renameMember(measuresOf(definition), from, to));
}

export function removeMeasure(definition: JsonObject, name: string): JsonObject {
  return withMember(definition, "measures", withoutMember(measuresOf(definition), name));
}

/** Adds a measure with a name that is not taken. */
export function addMeasure(definition: JsonObject): JsonObject {
  const measures = measuresOf(definition);
  let number = Object.keys(measures).length + 1;
  while (Object.hasOwn(measures, `measure_${number}`)) number += 1;
  return setMeasure(definition, `measure_${number}`, { op: "sum", field: "value" });
}

export function setRollups(
  definition: JsonObject,
  rollups: readonly (readonly string[])[],
): JsonObject {
  return withMember(definition, "rollups", rollups);
}

const isOptionalText = (value: Json) => value === null || typeof value === "string";

const SHOWN: Readonly<Record<string, (value: Json) => boolean>> = {
  name: (value) => typeof value === "string",
  dimensions: isTextList,
  time: (value) => value === null || isObject(value),
  measures: isObject,
  rollups: (value) => isArray(value) && value.every(isTextList),
  source: (value) => value === null || isObject(value),
  retention: isOptionalText,
};

/** Returns the members that only the JSON shows. */
export function membersInJson(definition: JsonObject): readonly string[] {
  return Object.entries(definition)
    .filter(([name, value]) => !(Object.hasOwn(SHOWN, name) && SHOWN[name]?.(value)))
    .map(([name]) => name);
}

/** Whether a member's fields may change it. */
export function isShown(definition: JsonObject, name: string): boolean {
  return !membersInJson(definition).includes(name);
}

/** Sets a member of a member, such as the bucket of `time`. */
export function setWithin(
  definition: JsonObject,
  name: string,
  member: string,
  value: Json | undefined,
): JsonObject {
  const object = definition[name];
  return withMember(definition, name, setMember(isObject(object) ? object : {}, member, value));
}
