/** A declared object as it was read, and a function that changes it unless it has changed since. */

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { ask } from "./control";
import { useTenant } from "./tenant";

export interface HeldBody<T> {
  readonly body: T;
  readonly change: (members: Partial<Record<keyof T, unknown>>) => Promise<void>;
}

/** Reads one of a list, such as `collections`; `every` says how soon to read it again. */
export function useHeld<T>(
  list: string,
  name: string,
  every: (body: T) => number | false = () => false,
): { held: HeldBody<T> | null; error: unknown } {
  const { slug, api } = useTenant();
  const client = useQueryClient();
  const queryKey = [slug, "held", `${list}/${name}`];
  const address = `${api}/${list}/${name}`;
  const { data, error } = useQuery({
    queryKey,
    queryFn: () => ask<T>(address),
    refetchInterval: ({ state }) => (state.data === undefined ? false : every(state.data.body)),
  });
  if (data === undefined) return { held: null, error };
  const { body, etag } = data;
  async function change(members: Partial<Record<keyof T, unknown>>) {
    const headers = etag === null ? {} : { "If-Match": etag };
    const answer = await ask<T>(address, { method: "PATCH", body: members, headers });
    client.setQueryData(queryKey, answer);
    await client.invalidateQueries({ queryKey: [slug, list] });
  }
  return { held: { body, change }, error: null };
}
