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

export class DocumentRef<T extends Document = Document> {
  constructor(
    private readonly collection: Collection<T>,
    readonly id: unknown,
  ) {}

  /** The live query of only this document. */
  get query(): Query<T> {
    return this.collection.filter({ _id: this.id } as Filter<T>);
  }

  get(options: CallOptions = {}): Promise<Envelope<T> | null> {
    return this.collection.get(this.id, options);
  }

  replace(document: T, options: CallOptions & Conditions = {}): Promise<WrittenDocument<T>> {
    return this.collection.replace(this.id, document, options);
  }

  update(
    update: Update<T>,
    options: CallOptions & UpdateOptions = {},
  ): Promise<WrittenDocument<T>> {
    return this.collection.update(this.id, update, options);
  }

  merge(patch: Plain, options: CallOptions & UpdateOptions = {}): Promise<WrittenDocument<T>> {
    return this.collection.merge(this.id, patch, options);
  }

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
