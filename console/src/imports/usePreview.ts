/** The server's view of the beginning of a file: columns, first documents, errors. */

import { useQuery } from "@tanstack/react-query";
import { parseTyped, ServerError } from "rillbase";
import { problemOf, sessionHeaders } from "../api/control";
import { useTenant } from "../api/tenant";
import type { FileColumn, MappedColumn } from "./columns";
import { type Delimiter, type Dialect, MEDIA_TYPES, parametersOf, sampleOf } from "./files";
import type { LineError } from "./target";

export interface Preview {
  readonly delimiter?: Delimiter;
  readonly columns: readonly FileColumn[];
  readonly documents: readonly {
    readonly line: number;
    readonly document: Readonly<Record<string, unknown>>;
  }[];
  readonly errors: readonly LineError[];
  /** The rows of the whole file, which Parquet knows. */
  readonly rows?: number;
  readonly checked: number;
  readonly failed: number;
}

/** Files that can be previewed, as opposed to Arrow streams. */
export function hasPreview({ format }: Dialect): boolean {
  return format !== "arrow";
}

/** Previews a file with its columns as they are, or as they are mapped. */
export function usePreview(
  path: string,
  file: File | null,
  dialect: Dialect | null,
  columns: readonly MappedColumn[] | null,
) {
  const { slug } = useTenant();
  const identity = file === null ? "" : `${file.name} ${file.size} ${file.lastModified}`;
  return useQuery({
    queryKey: [slug, "preview", path, identity, dialect, columns],
    queryFn: ({ signal }) => {
      if (file === null || dialect === null) throw new Error("There is no file.");
      return read(path, file, dialect, columns, sessionHeaders(slug), signal);
    },
    enabled: file !== null && dialect !== null && hasPreview(dialect),
    // While a mapping is edited, the preview of the one before stays.
    placeholderData: (before) => (columns === null ? undefined : before),
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });
}

async function read(
  path: string,
  file: File,
  dialect: Dialect,
  columns: readonly MappedColumn[] | null,
  headers: Record<string, string>,
  signal: AbortSignal,
): Promise<Preview> {
  const { content, isWhole } = await sampleOf(file, dialect.format);
  const whole = String(isWhole);
  const query = new URLSearchParams({ ...parametersOf(dialect, columns), whole });
  const answer = await fetch(`${path}?${query}`, {
    method: "POST",
    body: content,
    headers: { ...headers, "Content-Type": MEDIA_TYPES[dialect.format] },
    signal,
  });
  const text = await answer.text();
  if (!answer.ok) throw new ServerError(problemOf(text), answer.status);
  // Documents are Extended JSON.
  return parseTyped(text) as Preview;
}
