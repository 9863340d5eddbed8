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

/** What is asked of a dataset. */
export interface TableQuery {
  readonly table: string;
  readonly columns?: readonly string[];
  readonly filter?: Plain;
  readonly groupBy?: readonly string[];
  readonly aggregates?: Readonly<Record<string, { readonly op: string; readonly column?: string }>>;
  readonly having?: Plain;
  readonly order?: readonly (readonly [string, Direction])[];
  readonly limit?: number;
  /** Seconds: all that was committed longer ago is seen. `any`: what has been merged completely. */
  readonly freshness?: number | "any";
  /** Exactly this state, while it is retained. */
  readonly state?: number;
  /** The newest state at that time. */
  readonly asOf?: string | Date;
  /** No earlier state than this. */
  readonly since?: number;
}

/** What was read in a stage, and what could be left out. */
export interface StageRead {
  readonly files: number;
  readonly files_skipped: number;
  readonly rows: number;
}

export type Stage = "authority" | "merged" | "sorted" | "unsorted";

export interface TableAnswer<R> {
  readonly rows: readonly R[];
  /** The state that was asked; passed on as `since`, no later answer goes back in time. */
  readonly state: number;
  /** Age of the oldest committed upload that is missing from the result; 0 if none is missing. */
  readonly freshnessS: number;
  readonly read: Readonly<Record<Stage, StageRead>>;
}

export interface Upload {
  readonly id: string;
  readonly status: "open" | "committed" | "aborted";
  /** The state of the dataset that it made. */
  readonly state: number | null;
  /** How far its rows have come; `remapped` where keys are stored as ids. */
  readonly stage: Stage | "remapped" | null;
  readonly rows: number;
  readonly bytes: number;
  readonly created_at: string;
  readonly committed_at: string | null;
}

/** How far uploads have come. */
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

export interface PipelineStage {
  readonly first: number | null;
  readonly last: number | null;
  readonly rows: number;
  readonly bytes: number;
  readonly lag_s: number;
  readonly rows_per_s: number;
}

export type RowOperation = "insert" | "update" | "delete";

export class Dataset {
  constructor(
    /** @internal */ readonly core: Core,
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

  /** Asks once. */
  async query<R extends TableRow = TableRow>(
    query: TableQuery,
    options: CallOptions = {},
  ): Promise<TableAnswer<R>> {
    const { groupBy, asOf, ...rest } = query;
    const moment = asOf instanceof Date ? asOf.toISOString() : asOf;
    const given = { ...rest, group_by: groupBy, as_of: moment };
    const members = Object.entries(given).filter(([, value]) => value !== undefined);
    const body = stringify(Object.fromEntries(members));
    const found = await this.core.http.call(
      { method: "POST", path: this.path("query"), body },
      options,
    );
    const { rows, state, freshness_s, read } = found as Answered<R>;
    return { rows, state, freshnessS: freshness_s, read };
  }

  /** Tells how far uploads have come, and what queries would have to read. */
  async pipeline(options: CallOptions = {}): Promise<Pipeline> {
    const found = await this.core.http.call(
      { method: "GET", path: this.path("pipeline") },
      options,
    );
    return found as Pipeline;
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

/** An update sets a column to null by naming it: one that is left out stays as it is. */
function lineOf(table: string, row: TableRow, op: RowOperation): string {
  const names = Object.keys(row).filter((name) => row[name] !== undefined);
  const cleared = op === "update" ? names.filter((name) => row[name] === null) : [];
  const cells = names
    .filter((name) => !cleared.includes(name))
    .map((name) => `${JSON.stringify(name)}:${cellOf(row[name])}`);
  const nulled = cleared.length === 0 ? "" : `,"null":${JSON.stringify(cleared)}`;
  return `{${JSON.stringify(table)}:{${cells.join(",")}},"op":"${op}"${nulled}}\n`;
}

/** Columns know their types: whole numbers are digits, however many, and dates are text. */
function cellOf(value: unknown): string {
  if (typeof value === "bigint" || value instanceof Long) return value.toString();
  if (typeof value === "number" && !Number.isFinite(value))
    throw new TypeError("Lines have finite numbers only; Arrow and Parquet have the others.");
  return JSON.stringify(value);
}
