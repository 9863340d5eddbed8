/** What an aggregate's definition means: the event it takes, a row, and a query. */

import { isArray, isObject, type Json, type JsonObject } from "../../ui/definition/exactJson";
import { dimensionsOf, measuresOf } from "./aggregateModel";

const EVENT_TIME = "2026-11-21T16:32:10Z";
const BUCKET_START = "2026-11-21T16:30:00Z";

/** Returns the field with the time of events, if there are buckets. */
function timeFieldOf({ time }: JsonObject): string | null {
  return isObject(time) && typeof time.field === "string" ? time.field : null;
}

/** Returns an event that the aggregate can take. */
export function exampleEvent(definition: JsonObject): JsonObject {
  const time = timeFieldOf(definition);
  const fields = Object.values(measuresOf(definition)).flatMap((measure) =>
    isObject(measure) && typeof measure.field === "string" ? [[measure.field, 12] as const] : [],
  );
  return nested([
    ...dimensionsOf(definition).map((name) => [name, lastPart(name)] as const),
    ...fields,
    ...(time === null ? [] : [[time, EVENT_TIME] as const]),
  ]);
}

/** Returns a row, with a value of each measure's form. */
export function exampleRow(definition: JsonObject): JsonObject {
  const time = timeFieldOf(definition);
  return Object.fromEntries([
    ...dimensionsOf(definition).map((name) => [name, lastPart(name)]),
    ...(time === null ? [] : [[time, BUCKET_START]]),
    ...Object.entries(measuresOf(definition)).map(([name, measure]) => [
      name,
      isObject(measure) ? measureValue(measure) : null,
    ]),
  ]);
}

function measureValue({ op, type, quantiles, scale }: JsonObject): Json {
  const isDecimal = type === "decimal";
  switch (op) {
    case "count":
    case "distinct":
      return 21;
    case "sum":
      return isDecimal ? (252).toFixed(typeof scale === "number" ? scale : 2) : 252;
    case "avg":
      return isDecimal ? (12).toFixed(typeof scale === "number" ? scale : 2) : 12;
    case "quantiles":
      return Object.fromEntries(
        (isArray(quantiles) ? quantiles : [0.5, 0.95]).map((quantile) => [
          JSON.stringify(quantile),
          12,
        ]),
      );
    case "top":
      return [{ value: 12, count: 21 }];
    default:
      return 12;
  }
}

/** Returns the body of a query that the aggregate can answer. */
export function exampleQuery(definition: JsonObject): JsonObject {
  const time = timeFieldOf(definition);
  const [first] = dimensionsOf(definition);
  const [measure] = Object.keys(measuresOf(definition));
  return {
    group_by: [...(first === undefined ? [] : [first]), ...(time === null ? [] : [time])],
    ...(time === null ? {} : { from: "-24h" }),
    ...(measure === undefined ? {} : { order: [[measure, -1]] }),
    limit: 20,
  };
}

function lastPart(path: string): string {
  return `some ${path.split(".").at(-1)}`;
}

/** Puts values at paths: dots lead into objects. */
function nested(entries: readonly (readonly [string, Json])[]): JsonObject {
  return entries.reduce<JsonObject>(
    (object, [path, value]) => put(object, path.split("."), value),
    {},
  );
}

function put(object: JsonObject, [name = "", ...rest]: readonly string[], value: Json): JsonObject {
  const inner = object[name];
  return {
    ...object,
    [name]: rest.length === 0 ? value : put(isObject(inner) ? inner : {}, rest, value),
  };
}
