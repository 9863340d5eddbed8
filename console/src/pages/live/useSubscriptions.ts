/** The tenant's live subscriptions, read again as often as servers tell of them. */

import { useQuery } from "@tanstack/react-query";
import { call } from "../../api/control";
import { useTenant } from "../../api/tenant";
import type { Subscription } from "../../api/types";

/** Servers tell of theirs every two seconds. */
export const TOLD_MS = 2_000;

export function useSubscriptions() {
  const { slug, api } = useTenant();
  return useQuery({
    queryKey: [slug, "subscriptions"],
    queryFn: async () =>
      (await call<{ items: readonly Subscription[] }>(`${api}/subscriptions`)).items,
    refetchInterval: TOLD_MS,
  });
}
