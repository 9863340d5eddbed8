/** The formats in which the result of a query is saved. */

/** A query as the API takes it. */
export interface ResultQuery {
  readonly path: string;
  readonly body: object;
  /** The name of the file, without its ending. */
  readonly name: string;
}

export interface ExportFormat {
  readonly ending: "csv" | "json" | "ndjson" | "arrow" | "parquet";
  readonly title: string;
  /** What the server is asked for. */
  readonly mediaType: string;
  /** Makes the file of the server's answer, if it is another. */
  readonly convert?: (answer: Blob) => Promise<Blob>;
}

const NDJSON = "application/x-ndjson";

export const EXPORTS: readonly ExportFormat[] = [
  { ending: "csv", title: "CSV", mediaType: "text/csv" },
  { ending: "json", title: "JSON", mediaType: NDJSON, convert: arrayOfLines },
  { ending: "ndjson", title: "NDJSON", mediaType: NDJSON },
  { ending: "parquet", title: "Parquet", mediaType: "application/vnd.apache.parquet" },
];

/** Results of SQL, which are sent while they are computed. */
export const SQL_EXPORTS: readonly ExportFormat[] = [
  ...EXPORTS,
  { ending: "arrow", title: "Arrow", mediaType: "application/vnd.apache.arrow.stream" },
];

async function arrayOfLines(answer: Blob): Promise<Blob> {
  const lines = (await answer.text()).split("\n").filter((line) => line !== "");
  const text = lines.length === 0 ? "[]\n" : `[\n${lines.join(",\n")}\n]\n`;
  return new Blob([text], { type: "application/json" });
}
