/** Lists of the tenant's control plane, and what changes them. */

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";
import { useToasts } from "../ui/toasts";
import { all, type Call, call } from "./control";
import { useTenant } from "./tenant";

interface Options {
  readonly refetchMs?: number;
}

/** The address of something below the tenant; "" is the tenant itself. */
function below(api: string, name: string): string {
  return name === "" ? api : `${api}/${name}`;
}

/** Returns all items of a list below the tenant: `members`. */
export function useList<T>(name: string, { refetchMs }: Options = {}) {
  const { slug, api } = useTenant();
  return useQuery({
    queryKey: [slug, name],
    queryFn: () => all<T>(`${api}/${name}`),
    ...(refetchMs === undefined ? {} : { refetchInterval: refetchMs }),
  });
}

/** Returns one thing below the tenant. */
export function useOne<T>(name: string, { refetchMs }: Options = {}) {
  const { slug, api } = useTenant();
  return useQuery({
    queryKey: [slug, name],
    queryFn: () => call<T>(below(api, name)),
    ...(refetchMs === undefined ? {} : { refetchInterval: refetchMs }),
  });
}

/** Returns how to change something of a list, which is then read anew. */
export function useChange(name: string) {
  const { slug, api } = useTenant();
  const client = useQueryClient();
  return useCallback(
    async <T>(path: string, options: Call): Promise<T> => {
      const answer = await call<T>(below(api, path), options);
      await client.invalidateQueries({ queryKey: [slug, name] });
      return answer;
    },
    [api, client, slug, name],
  );
}

/** Does something on a click, and says so when it fails. */
export function useAttempt() {
  const { fail } = useToasts();
  return useCallback((work: () => Promise<unknown>) => void work().catch(fail), [fail]);
}
