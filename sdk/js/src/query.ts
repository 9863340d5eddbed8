/** Queries, run once or subscribed to. Immutable: every method returns another query. */

import { checkChoice, checkCount, checkName, checkObject, checkOptions } from "./arguments.js";
import type { Core } from "./core.js";
import { stringify } from "./ejson/encode.js";
import { CALL_OPTIONS, type CallOptions } from "./http/http.js";
import { changesOf, type QueryEvent } from "./live/changes.js";
import type { EnvelopeFrame } from "./live/frames.js";
import type { QuerySnapshot } from "./live/snapshot.js";
import { type Group, type QuerySpec, specKey } from "./live/spec.js";
import { rowOf } from "./live/view.js";
import type { Direction } from "./local/order.js";
import type { Plain } from "./local/paths.js";
import type { GroupRow, WithLookup } from "./shown.js";
import type { Document, Filter, Projection } from "./types.js";

/** The comparisons of `where`. */
export type WhereOperator = "==" | "!=" | "<" | "<=" | ">" | ">=" | "in" | "not-in";

const OPERATORS: Record<WhereOperator, string> = {
  "==": "$eq",
  "!=": "$ne",
  "<": "$lt",
  "<=": "$lte",
  ">": "$gt",
  ">=": "$gte",
  in: "$in",
  "not-in": "$nin",
};

const PAGE_OPTIONS = [...CALL_OPTIONS, "pageSize"];
const DIRECTIONS = ["asc", "desc", "1", "-1"];

/** Maximum number of documents in one page. */
const MAX_PAGE = 1_000;
/** Maximum number of rows of groups in one answer. */
const MAX_ROWS = 10_000;

/** Called with each snapshot. */
export type SnapshotListener<T> = (snapshot: QuerySnapshot<T>) => void;

/**
 * A query, run once or subscribed to. Immutable: methods that narrow it return another one.
 *
 * @example
 * const open = db.collection("todos").where("done", "==", false).sort("rank").limit(20);
 * const documents = await open.fetch();
 * const stop = open.onSnapshot(({ documents, state }) => console.log(state, documents));
 */
export class Query<T extends Document = Document> {
  constructor(
    /** @internal */ readonly core: Core,
    /** The query as data. */
    readonly spec: QuerySpec,
  ) {}

  /** Equal for equal queries. */
  get key(): string {
    return specKey(this.spec);
  }

  /** Adds a condition: `.where("rank", "<", 10)`. */
  where(
    field: (keyof T & string) | (string & {}),
    operator: WhereOperator,
    value: unknown,
  ): Query<T> {
    checkName("The field of where()", field);
    checkChoice("where() has no operator", operator, Object.keys(OPERATORS));
    if ((operator === "in" || operator === "not-in") && !Array.isArray(value)) {
      throw new TypeError(`The operator "${operator}" takes an array of values.`);
    }
    return this.filter({ [field]: { [OPERATORS[operator]]: value } } as Filter<T>);
  }

  /** Adds a filter in MongoDB's query language. */
  filter(filter: Filter<T>): Query<T> {
    checkObject("A filter", filter);
    const current = this.spec.filter;
    const both = Object.keys(current).length === 0 ? filter : { $and: [current, filter] };
    return this.with({ filter: both as Plain });
  }

  /**
   * Adds a sort key after those already set: a field, or the time at which documents were created
   * (`$created`) or last changed (`$updated`).
   */
  sort(
    field: (keyof T & string) | "$created" | "$updated" | (string & {}),
    direction: "asc" | "desc" | Direction = "asc",
  ): Query<T> {
    checkName("The field of sort()", field);
    checkChoice("sort() has no direction", String(direction), DIRECTIONS);
    const sign: Direction = direction === "desc" || direction === -1 ? -1 : 1;
    return this.with({ sort: [...(this.spec.sort ?? []), [field, sign]] });
  }

  /** Returns at most this many documents. */
  limit(limit: number): Query<T> {
    checkCount("A limit", limit);
    return this.with({ limit });
  }

  /** Skips this many documents. */
  offset(offset: number): Query<T> {
    checkCount("An offset", offset);
    return this.with({ offset });
  }

  /** Returns parts of the documents: names of fields, or a projection. */
  project(projection: Projection<T> | readonly (keyof T & string)[]): Query<T> {
    const plain = Array.isArray(projection)
      ? Object.fromEntries(projection.map((name: string) => [name, 1]))
      : projection;
    return this.with({ projection: plain as Plain });
  }

  /**
   * Groups documents with the same values of some fields into one row:
   * `.group(["owner"], { todos: { op: "count" } })`. Sort and window apply to the rows, whose type
   * follows from fields and measures unless it is given.
   */
  group<const B extends string, const M extends Group["measures"]>(
    by: readonly B[],
    measures: M,
  ): Query<GroupRow<T, B, M>>;
  group<R extends Document>(by: readonly string[], measures: Group["measures"]): Query<R>;
  group(by: readonly string[], measures: Group["measures"]): Query {
    return new Query(this.core, { ...this.spec, group: { by, measures } });
  }

  /**
   * Includes with each document, as `as`, the one of another collection whose id is in the field
   * `local`, or the list of those: `.lookup("people", "owner", "user")`. Included documents have
   * any shape unless a type is given: `.lookup<Todo & { user: Person | null }>(…)`.
   */
  lookup<const A extends string>(from: string, local: string, as: A): Query<WithLookup<T, A>>;
  lookup<R extends Document>(from: string, local: string, as: string): Query<R>;
  lookup(from: string, local: string, as: string): Query {
    const lookup = [...(this.spec.lookup ?? []), { from, local, as }];
    return new Query(this.core, { ...this.spec, lookup });
  }

  /** Runs the query once and returns the documents: all, or at most `limit`. */
  async fetch(options: CallOptions = {}): Promise<T[]> {
    checkOptions("fetch()", options, CALL_OPTIONS);
    const documents: T[] = [];
    for await (const page of this.pages(options)) documents.push(...page);
    return documents;
  }

  /** Runs the query once and returns the first document, or null. */
  async first(options: CallOptions = {}): Promise<T | null> {
    return (await this.limit(1).fetch(options))[0] ?? null;
  }

  /**
   * Runs the query once and yields the documents page by page, for answers too large for memory.
   */
  async *pages(options: CallOptions & { readonly pageSize?: number } = {}): AsyncGenerator<T[]> {
    checkOptions("pages()", options, PAGE_OPTIONS);
    const { collection, limit = Number.POSITIVE_INFINITY, ...rest } = this.spec;
    if (rest.group !== undefined) {
      yield await this.rows(options);
      return;
    }
    const pageSize = options.pageSize ?? MAX_PAGE;
    let cursor: string | null = null;
    for (let left = limit; left > 0; ) {
      const body: Plain = { ...rest, limit: Math.min(left, pageSize) };
      if (cursor !== null) {
        body.cursor = cursor;
        // The cursor already accounts for skipped documents.
        delete body.offset;
      }
      const page = await this.ask(collection, body, options);
      left -= page.documents.length;
      yield page.documents;
      if (page.cursor === null) return;
      cursor = page.cursor;
    }
  }

  /** Counts the documents that match the filter. */
  async count(options: CallOptions = {}): Promise<number> {
    const path = `/v1/collections/${encodeURIComponent(this.spec.collection)}/count`;
    const body = stringify({ filter: this.spec.filter });
    const answer = await this.core.http.call({ method: "POST", path, body }, options);
    return Number((answer as { count: number }).count);
  }

  /**
   * Subscribes. The listener is called with the answer, and again with each change of it, of the
   * state, or of pending writes. Returns a function that unsubscribes.
   */
  onSnapshot(listener: SnapshotListener<T>): () => void {
    const live = this.core.live.of(this.spec);
    let isOver = false;
    const notify = () => {
      if (!isOver) listener(live.snapshot as QuerySnapshot<T>);
    };
    const stop = live.listen(notify);
    // A query with other listeners already has an answer.
    if (live.snapshot.hasAnswer || live.snapshot.error !== null) queueMicrotask(notify);
    return () => {
      isOver = true;
      stop();
    };
  }

  /**
   * Subscribes, and yields the server's answer and then each change of it, without pending writes.
   * Across interruptions, no change is lost or repeated. Throws when the subscription ends with an
   * error; ends with the signal.
   */
  changes(options: { readonly signal?: AbortSignal } = {}): AsyncGenerator<QueryEvent<T>, void> {
    return changesOf<T>(this.core.live.of(this.spec), options.signal);
  }

  /** Rows have no cursor: they are read in one answer, up to its maximum. */
  private async rows(options: CallOptions): Promise<T[]> {
    const { collection, limit = MAX_ROWS, ...rest } = this.spec;
    const answer = await this.post(collection, { ...rest, limit }, options);
    const { rows } = answer as { rows: EnvelopeFrame[] };
    return rows.map((row) => rowOf(row).document as T);
  }

  private async ask(
    collection: string,
    body: Plain,
    options: CallOptions,
  ): Promise<{ documents: T[]; cursor: string | null }> {
    const answer = await this.post(collection, body, options);
    const { items, next_cursor: cursor } = answer as {
      items: EnvelopeFrame[];
      next_cursor: string | null;
    };
    return { documents: items.map((item) => rowOf(item).document as T), cursor };
  }

  private async post(collection: string, body: Plain, options: CallOptions): Promise<unknown> {
    const path = `/v1/collections/${encodeURIComponent(collection)}/query`;
    return this.core.http.call({ method: "POST", path, body: stringify(body) }, options);
  }

  private with(more: Partial<QuerySpec>): Query<T> {
    return new Query(this.core, { ...this.spec, ...more });
  }
}
