/** Checks how many of a collection's first documents a schema would reject. */

import { useQuery } from "@tanstack/react-query";
import { dataCall, useTenant } from "../../../api/tenant";
import type { Json, JsonObject } from "../../../ui/definition/exactJson";
import { useSettled } from "../../../ui/definition/useSettled";

export const SAMPLE = 1_000;
const EXAMPLES = 5;

interface Item {
  readonly id: Json;
  readonly document: JsonObject;
}

export interface SchemaCheck {
  readonly checked: number;
  readonly rejected: number;
  readonly examples: readonly Item[];
}

/** Checks a schema once it has not changed for a moment. */
export function useSchemaCheck(collection: string, schema: JsonObject) {
  const { slug } = useTenant();
  const settled = useSettled(schema);
  const { data, error } = useQuery({
    queryKey: [slug, "schema-check", collection, JSON.stringify(settled)],
    queryFn: () => check(slug, collection, settled),
    retry: false,
    staleTime: 10_000,
    placeholderData: (previous) => previous,
  });
  return { check: data, error };
}

async function check(slug: string, collection: string, schema: JsonObject): Promise<SchemaCheck> {
  const ask = <T>(call: string, body: JsonObject) =>
    dataCall<T>(slug, `/v1/collections/${collection}/${call}`, body);
  const sample = await ask<{ readonly items: readonly Item[] }>("query", {
    limit: SAMPLE,
    projection: { _id: 1 },
  });
  const ids = sample.items.map(({ id }) => id);
  if (ids.length === 0) return { checked: 0, rejected: 0, examples: [] };
  const filter = { _id: { $in: ids }, $nor: [{ $jsonSchema: schema }] };
  const [{ count }, { items }] = await Promise.all([
    ask<{ readonly count: number }>("count", { filter }),
    ask<{ readonly items: readonly Item[] }>("query", { filter, limit: EXAMPLES }),
  ]);
  return { checked: ids.length, rejected: count, examples: items };
}
