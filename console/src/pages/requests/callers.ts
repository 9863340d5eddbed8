/** The names of the tenant's API keys and members, by which the request log knows its callers. */

import { useMemo } from "react";
import { useList } from "../../api/list";
import { useTenant } from "../../api/tenant";
import type { ApiKey, Member } from "../../api/types";

export type CallerNames = ReadonlyMap<string, string>;

/** Returns names by caller, such as `api_key:…`; of keys only to those who may see them. */
export function useCallerNames(): CallerNames {
  const { may } = useTenant();
  const { data: keys } = useList<ApiKey>("api-keys", { isEnabled: may("developer") });
  const { data: members } = useList<Member>("members");
  return useMemo(
    () =>
      new Map([
        ...(keys ?? []).map(({ id, name }) => [`api_key:${id}`, name] as const),
        ...(members ?? []).map(
          ({ user_id: id, name, email }) => [`user:${id}`, name || email] as const,
        ),
      ]),
    [keys, members],
  );
}
