/** Saves matching documents as a file. */

import { stringify } from "rillbase";
import { sessionHeaders } from "../../../api/control";
import { download } from "../../../api/download";

export type ExportFormat = "csv" | "json" | "ndjson";

export const EXPORT_FORMATS: readonly (readonly [ExportFormat, string])[] = [
  ["csv", "CSV"],
  ["json", "JSON"],
  ["ndjson", "NDJSON"],
];

/** Fetches all documents that match and hands them to the browser as a file. */
export async function exportFile(
  slug: string,
  collection: string,
  filter: Record<string, unknown>,
  format: ExportFormat,
  onProgress: (bytes: number) => void,
): Promise<void> {
  const query = new URLSearchParams({ format });
  if (Object.keys(filter).length > 0) query.set("filter", stringify(filter));
  const headers = { ...sessionHeaders(slug), "Rillbase-EJSON": "canonical" };
  const path = `/v1/collections/${collection}/export?${query}`;
  await download(path, { headers }, `${collection}.${format}`, { onProgress });
}
