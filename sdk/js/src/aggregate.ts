/** Aggregates: adding events, and reading rows, once or as they change. */

import type { Core } from "./core.js";
import { stringify } from "./ejson/encode.js";
import type { CallOptions } from "./http/http.js";
import { LiveRows, type RowsSnapshot } from "./live/live-rows.js";
import type { Direction } from "./local/order.js";
import type { Plain } from "./local/paths.js";
import { newKey } from "./writes/calls.js";

/** Moments are RFC 3339, milliseconds since 1970, or relative to now: `-24h`. */
export type Moment = string | number | Date;

/** What is asked of an aggregate. */
export interface RowQuery {
  /** The rollup whose rows are read; the server chooses the one with the fewest. */
  readonly rollup?: readonly string[];
  /** A filter on the dimensions. */
  readonly filter?: Plain;
  readonly from?: Moment;
  readonly to?: Moment;
  readonly groupBy?: readonly string[];
  /** Coarser buckets, such as `1h`. */
  readonly bucket?: string;
  readonly order?: readonly (readonly [string, Direction])[];
  readonly limit?: number;
  readonly measures?: readonly string[];
  /** `previous`, or how long ago: sets each row beside that period's. */
  readonly compare?: string;
}

/** A row: what it is grouped by, its measures, and with `compare` the previous ones. */
export type AggregateRow = Readonly<Record<string, unknown>>;

export interface Rows<R> {
  readonly rows: readonly R[];
  /** Names the moment: a query with it, within a minute, sees the same. */
  readonly snapshot: string;
  /** Of a view: every write before this time is included. */
  readonly asOf: string | null;
}

export class Aggregate<R extends AggregateRow = AggregateRow> {
  constructor(
    /** @internal */ readonly core: Core,
    readonly name: string,
  ) {}

  /** Adds events, all of them or none. A call that is repeated adds them once. */
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

  /** Asks once. `snapshot`: `fresh`, or the one of an earlier answer. */
  async query(
    query: RowQuery = {},
    options: CallOptions & { readonly snapshot?: string } = {},
  ): Promise<Rows<R>> {
    const { snapshot } = options;
    const body = stringify({ ...members(query), ...(snapshot === undefined ? {} : { snapshot }) });
    const request = { method: "POST", path: this.path("query"), body };
    const found = (await this.core.http.call(request, options)) as {
      rows: R[];
      snapshot: string;
      as_of?: string | null;
    };
    return { rows: found.rows, snapshot: found.snapshot, asOf: found.as_of ?? null };
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
  const given = { ...rest, group_by: groupBy, from: moment(from), to: moment(to) };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

function moment(given: Moment | undefined): string | number | undefined {
  return given instanceof Date ? given.toISOString() : given;
}
