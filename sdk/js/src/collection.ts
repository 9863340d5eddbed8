/** A collection: reads and writes of its documents, and queries. */

import type { Core } from "./core.js";
import { DocumentRef } from "./document.js";
import { stringify } from "./ejson/encode.js";
import { idSegment } from "./ejson/path.js";
import { ObjectId } from "./ejson/types.js";
import { envelopeOf, type WrittenDocument, writtenOf } from "./envelope.js";
import { ServerError } from "./errors.js";
import type { CallOptions } from "./http/http.js";
import type { Plain } from "./local/paths.js";
import { Query } from "./query.js";
import { StepList } from "./steps.js";
import type { Document, Envelope, Filter, Update } from "./types.js";
import {
  bulk,
  type Conditions,
  newKey,
  type Step,
  single,
  type UpdateOptions,
} from "./writes/calls.js";

/** The result of a bulk call: the written documents, or errors, in the order of the operations. */
export type BulkResult =
  | { readonly id: unknown; readonly version: number }
  | { readonly error: ServerError };

/** The progress of a change of all documents that match a filter. */
export interface ManyResult {
  readonly matched: number;
  readonly changed: number;
  /** False: the time limit was reached; repeat the call. */
  readonly isComplete: boolean;
}

/**
 * A collection: reads and writes of its documents, and queries.
 *
 * @example
 * const todos = db.collection("todos");
 * const { id } = await todos.insert({ title: "Buy milk", done: false });
 * await todos.update(id, { $set: { done: true } });
 */
export class Collection<T extends Document = Document> extends Query<T> {
  constructor(
    core: Core,
    /** The name of the collection. */
    readonly name: string,
  ) {
    super(core, { collection: name, filter: {} });
  }

  /** A document by its `_id`, to be read, watched and changed. */
  doc(id: unknown): DocumentRef<T> {
    return new DocumentRef<T>(this, id);
  }

  /** Returns a document, or null if it does not exist. */
  async get(id: unknown, options: CallOptions = {}): Promise<Envelope<T> | null> {
    try {
      const path = this.path(`documents/${idSegment(id)}`);
      return envelopeOf<T>(await this.core.http.call({ method: "GET", path }, options));
    } catch (error) {
      if (error instanceof ServerError && error.code === "not_found") return null;
      throw error;
    }
  }

  /** Returns the documents that exist. */
  async getMany(ids: readonly unknown[], options: CallOptions = {}): Promise<Envelope<T>[]> {
    const request = { method: "POST", path: this.path("documents:get"), body: stringify({ ids }) };
    const answer = (await this.core.http.call(request, options)) as { items: unknown[] };
    return answer.items.map((item) => envelopeOf<T>(item));
  }

  /** Inserts a document; without an `_id` it gets an `ObjectId`. */
  insert(document: T, options: CallOptions = {}): Promise<WrittenDocument<T>> {
    const id = document._id ?? new ObjectId();
    return this.write({ operation: this.operation("insert", id, document), options: {} }, options);
  }

  /** Replaces a document, or creates it. */
  replace(
    id: unknown,
    document: T,
    options: CallOptions & Conditions = {},
  ): Promise<WrittenDocument<T>> {
    return this.write({ operation: this.operation("replace", id, document), options }, options);
  }

  /** Changes a document by operators: `{$set: {done: true}, $inc: {n: 1}}`. */
  update(
    id: unknown,
    update: Update<T>,
    options: CallOptions & UpdateOptions = {},
  ): Promise<WrittenDocument<T>> {
    return this.write(changeStep(this.name, "update", id, update as Plain, options), options);
  }

  /** Changes the fields that the patch names; null removes one. */
  merge(
    id: unknown,
    patch: Plain,
    options: CallOptions & UpdateOptions = {},
  ): Promise<WrittenDocument<T>> {
    return this.write(changeStep(this.name, "merge", id, patch, options), options);
  }

  /** Deletes a document. */
  async delete(id: unknown, options: CallOptions & Conditions = {}): Promise<void> {
    const operation = { kind: "delete", collection: this.name, id } as const;
    await this.core.outbox.submit(single({ operation, options }), options);
  }

  /**
   * Executes many operations in one call, all or none; with `ordered: false` each is independent,
   * and its result or error has the same position in the returned list.
   */
  async bulk(
    build: (steps: StepList) => void,
    options: CallOptions & { readonly ordered?: boolean } = {},
  ): Promise<BulkResult[]> {
    const list = new StepList(this.name);
    build(list);
    const job = bulk(this.name, list.steps, options.ordered ?? true);
    const body = (await this.core.outbox.submit(job, options)) as { results: Plain[] };
    return body.results.map((result) => {
      return "error" in result
        ? { error: new ServerError(result.error as object, 400) }
        : (result as { id: unknown; version: number });
    });
  }

  /** Changes all documents that match the filter, in batches of a thousand. */
  updateMany(filter: Filter<T>, update: Update<T>, options: CallOptions = {}): Promise<ManyResult> {
    return this.many("documents:update", { filter, update }, options);
  }

  /** Deletes all documents that match the filter, in batches of a thousand. */
  deleteMany(filter: Filter<T>, options: CallOptions = {}): Promise<ManyResult> {
    return this.many("documents:delete", { filter }, options);
  }

  private async many(call: string, body: object, options: CallOptions): Promise<ManyResult> {
    const idempotencyKey = newKey();
    const path = this.path(call);
    const request = { method: "POST", path, body: stringify(body), idempotencyKey };
    const answer = (await this.core.http.call(request, options)) as Plain;
    return {
      matched: Number(answer.matched),
      changed: Number(answer.changed),
      isComplete: answer.complete === true,
    };
  }

  private async write(step: Step, options: CallOptions): Promise<WrittenDocument<T>> {
    const body = await this.core.outbox.submit(single(step), options);
    return writtenOf<T>(step.operation.id, body);
  }

  private operation(kind: "insert" | "replace", id: unknown, document: T) {
    return { kind, collection: this.name, id, document } as const;
  }

  private path(rest: string): string {
    return `/v1/collections/${encodeURIComponent(this.name)}/${rest}`;
  }
}

/** Returns the step that changes a document. */
export function changeStep(
  collection: string,
  kind: "update" | "merge",
  id: unknown,
  change: Plain,
  options: UpdateOptions,
): Step {
  const { upsert = false, arrayFilters } = options;
  const isForeseeable = arrayFilters === undefined;
  return { operation: { kind, collection, id, change, upsert, isForeseeable }, options };
}
