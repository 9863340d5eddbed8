/** The files that can be imported: their formats, and how one is recognized. */

import type { MappedColumn } from "./columns";

export type FileFormat = "csv" | "json" | "ndjson" | "parquet" | "arrow";
export type Delimiter = "," | ";" | "|" | "tab";

/** How a file is read. */
export interface Dialect {
  readonly format: FileFormat;
  /** Null: the server guesses it. */
  readonly delimiter: Delimiter | null;
  readonly hasHeader: boolean;
}

export const MEDIA_TYPES: Readonly<Record<FileFormat, string>> = {
  csv: "text/csv",
  json: "application/json",
  ndjson: "application/x-ndjson",
  parquet: "application/vnd.apache.parquet",
  arrow: "application/vnd.apache.arrow.stream",
};

export const FORMAT_NAMES: Readonly<Record<FileFormat, string>> = {
  csv: "CSV",
  json: "JSON",
  ndjson: "NDJSON, one document per line",
  parquet: "Parquet",
  arrow: "Arrow stream",
};

export const DELIMITERS: readonly (readonly [Delimiter, string])[] = [
  [",", "Comma"],
  [";", "Semicolon"],
  ["tab", "Tab"],
  ["|", "Pipe"],
];

const ENDINGS: Readonly<Record<string, FileFormat>> = {
  csv: "csv",
  tsv: "csv",
  txt: "csv",
  ndjson: "ndjson",
  jsonl: "ndjson",
  json: "json",
  parquet: "parquet",
  arrow: "arrow",
  arrows: "arrow",
};

const HEAD_BYTES = 4_096;
/** As much as the server reads to guess the types of columns. */
const SAMPLE_BYTES = 256 * 1024;
/** The largest Parquet file whose rows are previewed. */
const PARQUET_SAMPLE_BYTES = 8 * 1024 * 1024;

/** The end of a Parquet file: the length of the footer before it, and four letters. */
const PARQUET_END_BYTES = 8;

/** As much of a file as a preview needs. */
export interface FileSample {
  readonly content: Blob;
  readonly isWhole: boolean;
}

/** Returns the beginning of a file; of a Parquet file all of it, or its footer if it is large. */
export async function sampleOf(file: File, format: FileFormat): Promise<FileSample> {
  const isParquet = format === "parquet";
  const most = isParquet ? PARQUET_SAMPLE_BYTES : SAMPLE_BYTES;
  if (file.size <= most) return { content: file, isWhole: true };
  if (!isParquet) return { content: file.slice(0, most), isWhole: false };
  const end = new DataView(await file.slice(-PARQUET_END_BYTES).arrayBuffer());
  const footer = Math.min(end.getUint32(0, true) + PARQUET_END_BYTES, most);
  return { content: file.slice(-footer), isWhole: false };
}

/** Returns the format that a file's first bytes show, or else its name. */
export async function formatOf(file: File): Promise<FileFormat> {
  const head = (await file.slice(0, HEAD_BYTES).text()).replace(/^\uFEFF/, "").trimStart();
  const named = ENDINGS[file.name.slice(file.name.lastIndexOf(".") + 1).toLowerCase()];
  if (head.startsWith("PAR1")) return "parquet";
  if (head.startsWith("[") && named !== "csv") return "json";
  if (head.startsWith("{") && named !== "csv") {
    const [first = ""] = head.split("\n", 1);
    return isJson(first) && head.length > first.length + 1 ? "ndjson" : (named ?? "json");
  }
  return named ?? "csv";
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** What the records of a file are, as its errors number them. */
export function recordNoun(format: FileFormat | undefined): "Line" | "Row" {
  return format === "parquet" ? "Row" : "Line";
}

/** The parameters that describe a file to the server. */
export function parametersOf(
  { format, delimiter, hasHeader }: Dialect,
  columns: readonly MappedColumn[] | null,
): Record<string, string> {
  const parameters: Record<string, string> = {};
  if (format === "csv" && delimiter !== null) parameters.delimiter = delimiter;
  if (format === "csv" && !hasHeader) parameters.header = "false";
  if (columns !== null) parameters.columns = JSON.stringify(columns);
  return parameters;
}
