/** How many records the server has written of an upload that it has received. */

import { useQuery } from "@tanstack/react-query";
import { call, sessionHeaders } from "../api/control";
import { useTenant } from "../api/tenant";
import type { Progress } from "../api/upload";
import type { Written } from "../ui/UploadProgress";

const REFRESH_MS = 500;

interface Imports {
  readonly items: readonly { readonly state: string; readonly lines: number }[];
}

/** Returns the progress of the newest running import, once the upload is complete. */
export function useWritten(
  path: string | null,
  progress: Progress | null,
  total: number | undefined,
): Written | null {
  const { slug } = useTenant();
  const isUploaded = progress !== null && progress.sent === progress.total;
  const newest = useQuery({
    queryKey: [slug, "imports", path],
    queryFn: ({ signal }) =>
      call<Imports>(`${path}?limit=1`, { headers: sessionHeaders(slug), signal }),
    enabled: path !== null && isUploaded,
    refetchInterval: REFRESH_MS,
    gcTime: 0,
  });
  const job = isUploaded ? newest.data?.items[0] : undefined;
  if (job?.state !== "running") return null;
  return { records: job.lines, ...(total === undefined ? {} : { total }) };
}
