/** Lists of the tenant's control plane, and functions that change them. */

import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";
import { useToasts } from "../ui/toasts";
import { all, type Call, call, type Page } from "./control";
import { useTenant } from "./tenant";

const PAGE = 50;

interface Options {
  readonly refetchMs?: number;
}

interface ListOptions extends Options {
  readonly isEnabled?: boolean;
}

/** The address of something below the tenant; "" is the tenant itself. */
function below(api: string, name: string): string {
  return name === "" ? api : `${api}/${name}`;
}

/** Returns all items of a list below the tenant: `members`. */
export function useList<T>(name: string, { refetchMs, isEnabled = true }: ListOptions = {}) {
  const { slug, api } = useTenant();
  return useQuery({
    queryKey: [slug, name],
    queryFn: () => all<T>(`${api}/${name}`),
    enabled: isEnabled,
    ...(refetchMs === undefined ? {} : { refetchInterval: refetchMs }),
  });
}

/** Returns a list below the tenant page by page, newest first. */
export function usePages<T, P extends Page<T> = Page<T>>(
  name: string,
  filters: Readonly<Record<string, string>> = {},
  { refetchMs }: Options = {},
) {
  const { slug, api } = useTenant();
  const read = useInfiniteQuery({
    queryKey: [slug, name, filters],
    queryFn: ({ pageParam }) => {
      const cursor = pageParam === "" ? {} : { cursor: pageParam };
      const query = new URLSearchParams({ limit: String(PAGE), ...filters, ...cursor });
      return call<P>(`${api}/${name}?${query}`);
    },
    initialPageParam: "",
    getNextPageParam: (page) => page.next_cursor ?? undefined,
    ...(refetchMs === undefined ? {} : { refetchInterval: refetchMs }),
  });
  const pages = read.data?.pages;
  return { ...read, data: pages?.flatMap((page) => page.items), first: pages?.[0] };
}

/** Returns one object below the tenant. */
export function useOne<T>(name: string, { refetchMs }: Options = {}) {
  const { slug, api } = useTenant();
  return useQuery({
    queryKey: [slug, name],
    queryFn: () => call<T>(below(api, name)),
    ...(refetchMs === undefined ? {} : { refetchInterval: refetchMs }),
  });
}

/** Returns a function that changes an entry of a list and then reads the list again. */
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

/** Runs an action on a click, and reports its failure. */
export function useAttempt() {
  const { fail } = useToasts();
  return useCallback((work: () => Promise<unknown>) => void work().catch(fail), [fail]);
}
