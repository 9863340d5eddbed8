/** One document by its `_id`. */

import type { Collection } from "./collection.js";
import type { WrittenDocument } from "./envelope.js";
import type { RillbaseError } from "./errors.js";
import type { CallOptions } from "./http/http.js";
import type { QueryState } from "./live/snapshot.js";
import type { Plain } from "./local/paths.js";
import type { Query } from "./query.js";
import type { Document, Envelope, Filter, Update } from "./types.js";
import type { Conditions, UpdateOptions } from "./writes/calls.js";

/** The state of a document, as listeners receive it. */
export interface DocumentSnapshot<T> {
  /** Null if it does not exist or may not be read. */
  readonly document: T | null;
  readonly version: number | null;
  readonly state: QueryState;
  /** Whether an answer has arrived. */
  readonly hasAnswer: boolean;
  readonly hasPendingWrites: boolean;
  readonly error: RillbaseError | null;
}

/** One document by its `_id`, to be read, watched and changed. */
export class DocumentRef<T extends Document = Document> {
  constructor(
    private readonly collection: Collection<T>,
    /** The `_id` of the document. */
    readonly id: unknown,
  ) {}

  /** The live query of only this document. */
  get query(): Query<T> {
    return this.collection.filter({ _id: this.id } as Filter<T>);
  }

  /** Returns the document, or null if it does not exist. */
  get(options: CallOptions = {}): Promise<Envelope<T> | null> {
    return this.collection.get(this.id, options);
  }

  /** Replaces the document, or creates it. */
  replace(document: T, options: CallOptions & Conditions = {}): Promise<WrittenDocument<T>> {
    return this.collection.replace(this.id, document, options);
  }

  /** Changes the document by operators: `{$set: {done: true}}`. */
  update(
    update: Update<T>,
    options: CallOptions & UpdateOptions = {},
  ): Promise<WrittenDocument<T>> {
    return this.collection.update(this.id, update, options);
  }

  /** Changes the fields that the patch names; null removes one. */
  merge(patch: Plain, options: CallOptions & UpdateOptions = {}): Promise<WrittenDocument<T>> {
    return this.collection.merge(this.id, patch, options);
  }

  /** Deletes the document. */
  delete(options: CallOptions & Conditions = {}): Promise<void> {
    return this.collection.delete(this.id, options);
  }

  /** Subscribes to the document. Returns a function that unsubscribes. */
  onSnapshot(listener: (snapshot: DocumentSnapshot<T>) => void): () => void {
    return this.query.onSnapshot(({ items, state, hasAnswer, hasPendingWrites, error }) => {
      const item = items[0];
      const { document = null, version = null } = item ?? {};
      listener({ document, version, state, hasAnswer, hasPendingWrites, error });
    });
  }
}
