/** Datasets: rows are uploaded, and queried as fresh as needed. */

import type { Core } from "./core.js";
import { stringify } from "./ejson/encode.js";
import { Long } from "./ejson/types.js";
import type { CallOptions } from "./http/http.js";
import type { Direction } from "./local/order.js";
import type { Plain } from "./local/paths.js";
import { newKey } from "./writes/calls.js";

/** A row of a table, or of an answer. */
export type TableRow = Readonly<Record<string, unknown>>;

/** A query of a dataset. */
export interface TableQuery {
  readonly table: string;
  readonly columns?: readonly string[];
  readonly filter?: Plain;
  readonly groupBy?: readonly string[];
  readonly aggregates?: Readonly<Record<string, { readonly op: string; readonly column?: string }>>;
  readonly having?: Plain;
  readonly order?: readonly (readonly [string, Direction])[];
  readonly limit?: number;
  /**
   * Seconds: everything committed longer ago is included. `any`: only what has been merged
   * completely.
   */
  readonly freshness?: number | "any";
  /** Exactly this state, while it is retained. */
  readonly state?: number;
  /** The newest state at that time. */
  readonly asOf?: string | Date;
  /** No earlier state than this. */
  readonly since?: number;
}

/** A SELECT statement over all tables of a dataset. */
export interface SqlStatement {
  readonly sql: string;
  /** The values of `$1`, `$2`, … or `?`; by name those of `$name`. */
  readonly parameters?: readonly unknown[] | Plain;
  readonly limit?: number;
  /** Seconds for the statement and the transfer of its result. */
  readonly timeout?: number;
  /** What executes the statement. By default, the number of rows that it reads decides. */
  readonly engine?: "auto" | "duckdb" | "spark";
  /** As in a query. */
  readonly freshness?: number | "any";
  readonly state?: number;
  readonly asOf?: string | Date;
  readonly since?: number;
}

/** The result of a statement, at one state of all tables. */
export interface SqlAnswer<R> {
  readonly rows: readonly R[];
  readonly columns: readonly { readonly name: string; readonly type: string }[];
  /** The state that was queried. Pass it as `since` to never see an earlier one. */
  readonly state: number;
  /** Age of the oldest committed upload that is missing from the result; 0 if none is missing. */
  readonly freshnessS: number;
  /** What has executed the statement. */
  readonly engine: "duckdb" | "spark";
  /** Whether the limit has cut off rows. */
  readonly truncated: boolean;
}

/** What was read in a stage, and what could be skipped. */
export interface StageRead {
  readonly files: number;
  readonly files_skipped: number;
  readonly rows: number;
}

/** The stages that a row passes on its way into a table. */
export type Stage = "authority" | "merged" | "sorted" | "unsorted";

/** The rows of an answer, and the state of the dataset that they show. */
export interface TableAnswer<R> {
  readonly rows: readonly R[];
  /** The state that was queried. Pass it as `since` to never see an earlier one. */
  readonly state: number;
  /** Age of the oldest committed upload that is missing from the result; 0 if none is missing. */
  readonly freshnessS: number;
  readonly read: Readonly<Record<Stage, StageRead>>;
}

/** An upload and its progress. */
export interface Upload {
  readonly id: string;
  readonly status: "open" | "committed" | "aborted";
  /** The state of the dataset that it created. */
  readonly state: number | null;
  /** The stages that its rows have reached; `remapped` if keys are stored as ids. */
  readonly stage: Stage | "remapped" | null;
  readonly rows: number;
  readonly bytes: number;
  readonly created_at: string;
  readonly committed_at: string | null;
}

/** The progress of uploads. */
export interface Pipeline {
  readonly state: number;
  readonly authority_state: number;
  readonly error: string | null;
  /** Datasets with ID-keys have `remapped`, between `unsorted` and `sorted`. */
  readonly stages: Readonly<Record<Stage, PipelineStage>> & { readonly remapped?: PipelineStage };
  readonly reads: readonly {
    readonly freshness: number | "any";
    readonly state: number;
    readonly files: Readonly<Partial<Record<Stage, number>>>;
    readonly rows: number;
  }[];
  readonly uploads: readonly Upload[];
  readonly iceberg: { readonly namespace: string; readonly tag: string | null };
}

/** The uploads that have reached a stage, and its throughput. */
export interface PipelineStage {
  readonly first: number | null;
  readonly last: number | null;
  readonly rows: number;
  readonly bytes: number;
  readonly lag_s: number;
  readonly rows_per_s: number;
}

/** What an upload does with its rows. */
export type RowOperation = "insert" | "update" | "delete";

/**
 * A dataset: rows are uploaded, and queried as fresh as needed.
 *
 * @example
 * const posts = db.dataset("posts");
 * await posts.upload("posts", [{ id: 1, author: "ada", text: "Hello" }]);
 * const { rows } = await posts.query({ table: "posts", freshness: 0 });
 */
export class Dataset {
  constructor(
    /** @internal */ readonly core: Core,
    /** The name of the dataset. */
    readonly name: string,
  ) {}

  /**
   * Uploads rows of a table, all of them or none. It happens once, however often it is repeated:
   * under an `id` also when another program sends it again.
   */
  async upload(
    table: string,
    rows: readonly TableRow[],
    options: CallOptions & { readonly op?: RowOperation; readonly id?: string } = {},
  ): Promise<Upload> {
    const { op = "insert", id } = options;
    const query = id === undefined ? "" : `?${new URLSearchParams({ id })}`;
    const request = {
      method: "POST",
      path: this.path(`uploads${query}`),
      body: rows.map((row) => lineOf(table, row, op)).join(""),
      contentType: "application/x-ndjson",
      ...(id === undefined ? { idempotencyKey: newKey() } : {}),
    };
    return (await this.core.http.call(request, options)) as Upload;
  }

  /** Runs the query once. */
  async query<R extends TableRow = TableRow>(
    query: TableQuery,
    options: CallOptions = {},
  ): Promise<TableAnswer<R>> {
    const { groupBy, ...rest } = query;
    const body = bodyOf({ ...rest, group_by: groupBy });
    const answer = await this.core.http.call(
      { method: "POST", path: this.path("query"), body },
      options,
    );
    const { rows, state, freshness_s, read } = answer as Answered<R>;
    return { rows, state, freshnessS: freshness_s, read };
  }

  /** Executes a SELECT statement that returns at most 10,000 rows. */
  async sql<R extends TableRow = TableRow>(
    statement: string | SqlStatement,
    options: CallOptions = {},
  ): Promise<SqlAnswer<R>> {
    const body = bodyOf(typeof statement === "string" ? { sql: statement } : { ...statement });
    const answer = await this.core.http.call(
      { method: "POST", path: this.path("sql"), body },
      options,
    );
    const { freshness_s, ...rest } = answer as SqlAnswered<R>;
    return { ...rest, freshnessS: freshness_s };
  }

  /** Returns the progress of uploads, and what queries would have to read. */
  async pipeline(options: CallOptions = {}): Promise<Pipeline> {
    const answer = await this.core.http.call(
      { method: "GET", path: this.path("pipeline") },
      options,
    );
    return answer as Pipeline;
  }

  private path(call: string): string {
    return `/v1/datasets/${encodeURIComponent(this.name)}/${call}`;
  }
}

interface Answered<R> {
  readonly rows: readonly R[];
  readonly state: number;
  readonly freshness_s: number;
  readonly read: TableAnswer<R>["read"];
}

type SqlAnswered<R> = Omit<SqlAnswer<R>, "freshnessS"> & { readonly freshness_s: number };

/** Returns a body of the fields that have values. */
function bodyOf({ asOf, ...rest }: Readonly<Record<string, unknown>>): string {
  const fields = { ...rest, as_of: asOf instanceof Date ? asOf.toISOString() : asOf };
  const members = Object.entries(fields).filter(([, value]) => value !== undefined);
  return stringify(Object.fromEntries(members));
}

/** An update sets a column to null explicitly: an omitted column is unchanged. */
function lineOf(table: string, row: TableRow, op: RowOperation): string {
  const names = Object.keys(row).filter((name) => row[name] !== undefined);
  const cleared = op === "update" ? names.filter((name) => row[name] === null) : [];
  const cells = names
    .filter((name) => !cleared.includes(name))
    .map((name) => `${JSON.stringify(name)}:${cellOf(row[name])}`);
  const nulled = cleared.length === 0 ? "" : `,"null":${JSON.stringify(cleared)}`;
  return `{${JSON.stringify(table)}:{${cells.join(",")}},"op":"${op}"${nulled}}\n`;
}

/** Columns have types, so integers of any size are written as digits, and dates as text. */
function cellOf(value: unknown): string {
  if (typeof value === "bigint" || value instanceof Long) return value.toString();
  if (typeof value === "number" && !Number.isFinite(value))
    throw new TypeError("Lines have finite numbers only; Arrow and Parquet have the others.");
  return JSON.stringify(value);
}
