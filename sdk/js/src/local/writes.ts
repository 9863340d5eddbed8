/**
 * Pending writes, as far as their effect can be predicted: a view shows them before the server has
 * confirmed them.
 *
 * A write is pending until it is rejected, or until every live query of its collection has caught
 * up with it. Meanwhile, the server's response to the write replaces the prediction.
 */

import { idKey } from "../ejson/path.js";
import { isPlain, type Plain } from "./paths.js";
import { merged, updated } from "./update.js";

/** One operation of a write. */
export type Operation =
  | {
      readonly kind: "insert";
      readonly collection: string;
      readonly id: unknown;
      readonly document: Plain;
    }
  | {
      readonly kind: "replace";
      readonly collection: string;
      readonly id: unknown;
      readonly document: Plain;
    }
  | {
      readonly kind: "update" | "merge";
      readonly collection: string;
      readonly id: unknown;
      readonly change: Plain;
      readonly upsert: boolean;
      /** Array filters name elements that only the server finds. */
      readonly isForeseeable: boolean;
    }
  | { readonly kind: "delete"; readonly collection: string; readonly id: unknown };

/** The effect of a write on a document. */
export type Outcome =
  | { readonly kind: "document"; readonly document: Plain }
  | { readonly kind: "deleted" }
  | { readonly kind: "unknown" };

/** What the server has reported of a write; other members are absent. */
export interface Confirmation {
  readonly version?: number;
  readonly document?: Plain;
}

export class Pending {
  readonly key: string;
  confirmation: Confirmation | undefined;
  /** The live queries that have yet to catch up with it. */
  readonly waiting = new Set<Holder>();

  constructor(readonly operation: Operation) {
    this.key = idKey(operation.id);
  }

  /** Returns the effect on the current document, undefined if it is not known. */
  outcome(held: Plain | undefined): Outcome {
    const known = this.confirmation?.document;
    return known === undefined
      ? foreseen(this.operation, held)
      : { kind: "document", document: known };
  }
}

function foreseen(operation: Operation, held: Plain | undefined): Outcome {
  switch (operation.kind) {
    case "insert":
    case "replace":
      return { kind: "document", document: { _id: operation.id, ...operation.document } };
    case "delete":
      return { kind: "deleted" };
    default: {
      if (held === undefined || !operation.isForeseeable) return { kind: "unknown" };
      const change = operation.kind === "merge" ? merged : updated;
      const document = change(held, operation.change);
      return document === undefined ? { kind: "unknown" } : { kind: "document", document };
    }
  }
}

/** A live query, from the point of view of the writes. */
export interface Holder {
  /** The pending writes have changed. */
  pendingChanged(): void;
  /** The server has confirmed a write; the holder releases it once it has caught up. */
  confirmed(pending: Pending): void;
}

const NONE: readonly Pending[] = [];

export class LocalWrites {
  private readonly pending = new Map<string, Pending[]>();
  private readonly holders = new Map<string, Set<Holder>>();

  /** Returns a collection's pending writes, in the order in which they were made. */
  of(collection: string): readonly Pending[] {
    return this.pending.get(collection) ?? NONE;
  }

  join(collection: string, holder: Holder): void {
    const held = this.holders.get(collection) ?? new Set();
    this.holders.set(collection, held.add(holder));
  }

  leave(collection: string, holder: Holder): void {
    this.holders.get(collection)?.delete(holder);
    for (const pending of [...this.of(collection)]) this.release(pending, holder);
  }

  begin(operations: readonly Operation[]): Pending[] {
    const begun = operations.map((operation) => new Pending(operation));
    for (const pending of begun) {
      const { collection } = pending.operation;
      this.pending.set(collection, [...this.of(collection), pending]);
    }
    this.notifyHolders(begun);
    return begun;
  }

  confirm(pending: Pending, confirmation: Confirmation): void {
    pending.confirmation = confirmation;
    const holders = this.holders.get(pending.operation.collection) ?? new Set();
    for (const holder of holders) pending.waiting.add(holder);
    for (const holder of [...holders]) holder.confirmed(pending);
    if (pending.waiting.size === 0) this.undo([pending]);
  }

  /** A live query has caught up with a write. */
  release(pending: Pending, holder: Holder): void {
    pending.waiting.delete(holder);
    if (pending.confirmation !== undefined && pending.waiting.size === 0) this.undo([pending]);
  }

  /** Removes writes: rejected, or superseded by what the server sent. */
  undo(gone: readonly Pending[]): void {
    for (const pending of gone) {
      const { collection } = pending.operation;
      const rest = this.of(collection).filter((other) => other !== pending);
      if (rest.length > 0) this.pending.set(collection, rest);
      else this.pending.delete(collection);
    }
    this.notifyHolders(gone);
  }

  private notifyHolders(changed: readonly Pending[]): void {
    for (const collection of new Set(changed.map(({ operation }) => operation.collection))) {
      for (const holder of [...(this.holders.get(collection) ?? [])]) holder.pendingChanged();
    }
  }
}

/** Returns what the envelope in a response reports of a write. */
export function confirmationOf(envelope: unknown): Confirmation {
  if (!isPlain(envelope) || typeof envelope.version !== "number") return {};
  const { version, document } = envelope;
  return isPlain(document) ? { version, document } : { version };
}
