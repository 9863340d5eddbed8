/** Reads an object of the control plane and changes it with optimistic concurrency (`If-Match`). */

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { ask } from "./control";
import { useTenant } from "./tenant";

/** The part of the query key that marks resources. */
export const RESOURCE = "resource";

export interface Resource<T> {
  readonly body: T;
  /** The body as it was received. */
  readonly text: string;
  readonly change: (members: Partial<Record<keyof T, unknown>>) => Promise<void>;
}

/** Reads one object of a list, such as `collections`. `every` returns the polling interval in ms. */
export function useResource<T>(
  list: string,
  name: string,
  every: (body: T) => number | false = () => false,
): { resource: Resource<T> | null; error: unknown } {
  const { slug, api } = useTenant();
  const client = useQueryClient();
  const queryKey = [slug, RESOURCE, `${list}/${name}`];
  const address = `${api}/${list}/${name}`;
  const { data, error } = useQuery({
    queryKey,
    queryFn: () => ask<T>(address),
    refetchInterval: ({ state }) => (state.data === undefined ? false : every(state.data.body)),
  });
  if (data === undefined) return { resource: null, error };
  const { body, text, etag } = data;
  async function change(members: Partial<Record<keyof T, unknown>>) {
    const headers = etag === null ? {} : { "If-Match": etag };
    const answer = await ask<T>(address, { method: "PATCH", body: members, headers });
    client.setQueryData(queryKey, answer);
    await client.invalidateQueries({ queryKey: [slug, list] });
  }
  return { resource: { body, text, change }, error: null };
}
