/** The tenant's live subscriptions, read at the interval at which servers report them. */

import { useQuery } from "@tanstack/react-query";
import { call } from "../../api/control";
import { useTenant } from "../../api/tenant";
import type { Subscription } from "../../api/types";

/** Servers report their subscriptions every two seconds. */
export const REFRESH_MS = 2_000;

export function useSubscriptions() {
  const { slug, api } = useTenant();
  return useQuery({
    queryKey: [slug, "subscriptions"],
    queryFn: async () =>
      (await call<{ items: readonly Subscription[] }>(`${api}/subscriptions`)).items,
    refetchInterval: REFRESH_MS,
  });
}
