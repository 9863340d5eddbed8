/** Aggregates: adding events, and reading rows, once or as they change. */

import type { Core } from "./core.js";
import { stringify } from "./ejson/encode.js";
import type { CallOptions } from "./http/http.js";
import { LiveRows, type RowsSnapshot } from "./live/live-rows.js";
import type { Direction } from "./local/order.js";
import type { Plain } from "./local/paths.js";
import { newKey } from "./writes/calls.js";

/** Times are RFC 3339, milliseconds since 1970, or relative to now: `-24h`. */
export type PointInTime = string | number | Date;

/** A query of an aggregate. */
export interface RowQuery {
  /** The rollup whose rows are read; by default the one with the fewest rows. */
  readonly rollup?: readonly string[];
  /** A filter on the dimensions. */
  readonly filter?: Plain;
  readonly from?: PointInTime;
  readonly to?: PointInTime;
  readonly groupBy?: readonly string[];
  /** Coarser buckets, such as `1h`. */
  readonly bucket?: string;
  readonly order?: readonly (readonly [string, Direction])[];
  readonly limit?: number;
  readonly measures?: readonly string[];
  /** `previous`, or a duration: compares each row with that of the earlier period. */
  readonly compare?: string;
}

/** A row: the values that it is grouped by, its measures, and with `compare` the previous ones. */
export type AggregateRow = Readonly<Record<string, unknown>>;

/** Rows as of one point in time. */
export interface Rows<R> {
  readonly rows: readonly R[];
  /** Identifies the snapshot: a query with it, within a minute, sees the same state. */
  readonly snapshot: string;
  /** For a view: all writes before this time are included. */
  readonly asOf: string | null;
}

/**
 * One aggregate: adding events, and reading rows, once or as they change.
 *
 * @example
 * const requests = db.aggregate("requests_5m");
 * const { rows } = await requests.query({ from: "-1h", groupBy: ["customer"], measures: ["count"] });
 */
export class Aggregate<R extends AggregateRow = AggregateRow> {
  constructor(
    /** @internal */ readonly core: Core,
    /** The name of the aggregate. */
    readonly name: string,
  ) {}

  /** Adds events, all or none. A retried call adds them once. */
  async add(
    events: Plain | readonly Plain[],
    options: CallOptions = {},
  ): Promise<{ readonly applied: number; readonly repeated: number }> {
    const request = {
      method: "POST",
      path: this.path("events"),
      body: stringify(events),
      idempotencyKey: newKey(),
    };
    const answer = await this.core.http.call(request, options);
    return answer as { applied: number; repeated: number };
  }

  /** Runs the query once. `snapshot`: `fresh`, or that of an earlier answer. */
  async query(
    query: RowQuery = {},
    options: CallOptions & { readonly snapshot?: string } = {},
  ): Promise<Rows<R>> {
    const { snapshot } = options;
    const body = stringify({ ...members(query), ...(snapshot === undefined ? {} : { snapshot }) });
    const request = { method: "POST", path: this.path("query"), body };
    const answer = (await this.core.http.call(request, options)) as {
      rows: R[];
      snapshot: string;
      as_of?: string | null;
    };
    return { rows: answer.rows, snapshot: answer.snapshot, asOf: answer.as_of ?? null };
  }

  /**
   * Subscribes. Calls the listener with the rows, and again whenever they or the state change.
   * Returns a function that unsubscribes.
   */
  on(query: RowQuery, listener: (snapshot: RowsSnapshot<R>) => void): () => void {
    const live = this.live(query);
    return live.listen(() => listener(live.snapshot as RowsSnapshot<R>));
  }

  /** @internal */
  live(query: RowQuery): LiveRows {
    const { connection, report } = this.core;
    return new LiveRows({ aggregate: this.name, ...members(query) }, connection, report);
  }

  private path(call: string): string {
    return `/v1/aggregates/${encodeURIComponent(this.name)}/${call}`;
  }
}

/** Returns the members of a query's message or body. */
function members(query: RowQuery): Plain {
  const { groupBy, from, to, ...rest } = query;
  const fields = { ...rest, group_by: groupBy, from: timeOf(from), to: timeOf(to) };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/** Returns a time as requests contain it. */
export function timeOf(time: PointInTime | undefined): string | number | undefined {
  return time instanceof Date ? time.toISOString() : time;
}
