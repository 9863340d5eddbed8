/** The filters of a list, kept in the page's address: a link shows the same entries. */

import { useCallback, useMemo } from "react";
import { useSearchParams } from "wouter";

export type Filters<Name extends string> = Readonly<Partial<Record<Name, string>>>;

/** Returns the filters that are set, and a function that changes some of them; "" removes one. */
export function useFilters<Name extends string>(
  names: readonly Name[],
): readonly [Filters<Name>, (changed: Filters<Name>) => void] {
  const [search, setSearch] = useSearchParams();
  const text = search.toString();
  const filters = useMemo(() => {
    const params = new URLSearchParams(text);
    const pairs = names.map((name) => [name, params.get(name) ?? ""] as const);
    return Object.fromEntries(pairs.filter(([, value]) => value !== "")) as Filters<Name>;
  }, [names, text]);
  const change = useCallback(
    (changed: Filters<Name>) =>
      setSearch(
        (params) => {
          const next = new URLSearchParams(params);
          for (const [name, value] of Object.entries<string | undefined>(changed)) {
            if (value) next.set(name, value);
            else next.delete(name);
          }
          return next;
        },
        { replace: true },
      ),
    [setSearch],
  );
  return [filters, change];
}

/** Returns what removes all of the filters. */
export function without<Name extends string>(names: readonly Name[]): Filters<Name> {
  return Object.fromEntries(names.map((name) => [name, ""])) as Filters<Name>;
}
