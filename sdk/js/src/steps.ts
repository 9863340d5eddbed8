/** Operations that are collected before they are sent together. */

import { changeStep } from "./collection.js";
import { ObjectId } from "./ejson/types.js";
import type { Plain } from "./local/paths.js";
import type { Update } from "./types.js";
import type { Conditions, Step, UpdateOptions } from "./writes/calls.js";

/** Operations on one collection. */
export class StepList {
  constructor(
    private readonly collection: string,
    /** @internal */ readonly steps: Step[] = [],
  ) {}

  /** Inserts a document; without an `_id` it gets an `ObjectId`. */
  insert(document: Plain): this {
    const id = document._id ?? new ObjectId();
    const { collection } = this;
    return this.add({ operation: { kind: "insert", collection, id, document }, options: {} });
  }

  /** Replaces a document, or creates it. */
  replace(id: unknown, document: Plain, options: Conditions = {}): this {
    const { collection } = this;
    return this.add({ operation: { kind: "replace", collection, id, document }, options });
  }

  /** Changes a document by operators. */
  update(id: unknown, update: Update<Plain>, options: UpdateOptions = {}): this {
    return this.add(changeStep(this.collection, "update", id, update as Plain, options));
  }

  /** Deletes a document. */
  delete(id: unknown, options: Conditions = {}): this {
    const { collection } = this;
    return this.add({ operation: { kind: "delete", collection, id }, options });
  }

  private add(step: Step): this {
    this.steps.push(step);
    return this;
  }
}

/** Operations on any collections. */
export class TransactionSteps {
  /** @internal */ readonly steps: Step[] = [];

  /** The operations on a collection; they are executed in the order in which they were added. */
  collection(name: string): StepList {
    return new StepList(name, this.steps);
  }
}
