/**
 * A live query of a client, shared by all its listeners: the server's answer, pending writes
 * applied on top, and the state. Changes that arrive together cause one notification.
 */

import type { Clock, Timer } from "../clock.js";
import type { RillbaseError } from "../errors.js";
import { overlaid, type Shown, shownRow } from "../local/overlay.js";
import type { Holder, LocalWrites, Pending } from "../local/writes.js";
import type { Connection } from "./connection.js";
import { type Done, type FailureReport, Followed } from "./followed.js";
import type { EventFrame } from "./frames.js";
import { difference, type ItemChange, NO_ANSWER, type QuerySnapshot } from "./snapshot.js";
import { type QuerySpec, specBody } from "./spec.js";
import type { Change, Effect, Row } from "./view.js";

/** What the server sent: the first answer, changes, or an error. */
export type ServerUpdate =
  | { readonly kind: "result"; readonly rows: readonly Row[] }
  | { readonly kind: "changes"; readonly changes: readonly Change[] }
  | { readonly kind: "failed"; readonly error: RillbaseError };

export interface QueryContext {
  readonly connection: Connection;
  readonly writes: LocalWrites;
  readonly clock: Clock;
  /** Reads a document that was too large to be sent with its change. */
  readonly read: (collection: string, id: unknown) => Promise<Row | undefined>;
  readonly report: FailureReport;
}

/**
 * Silence for this long proves that a confirmed write does not affect a query: the server reports
 * earlier that it is behind.
 */
const CAUGHT_UP_MS = 3_000;

export class LiveQuery extends Followed implements Holder {
  /** The last state passed to listeners. A new object whenever it changes. */
  snapshot: QuerySnapshot<unknown> = NO_ANSWER;
  private shown: Shown[] = [];
  private isFirst = true;
  private readonly listeners = new Set<() => void>();
  private readonly updateListeners = new Set<(update: ServerUpdate) => void>();
  /** The newest version received of each document while writes are pending. */
  private readonly newestVersions = new Map<string, number>();
  private readonly graces = new Map<Pending, Timer>();
  private isAttached = false;

  constructor(
    readonly spec: QuerySpec,
    private readonly context: QueryContext,
    private readonly unused: () => void,
  ) {
    super();
    this.view.areVersionsReliable = spec.lookup === undefined;
  }

  /** Calls the listener whenever `snapshot` has changed. Returns a function that stops this. */
  listen(listener: () => void): () => void {
    this.listeners.add(listener);
    return this.begin(() => this.listeners.delete(listener));
  }

  /** Calls the listener with the answer, if there is one, and then with every update. */
  onUpdate(listener: (update: ServerUpdate) => void): () => void {
    this.updateListeners.add(listener);
    if (this.view.hasResult) listener({ kind: "result", rows: this.view.rows });
    return this.begin(() => this.updateListeners.delete(listener));
  }

  private begin(stop: () => void): () => void {
    if (!this.isAttached) {
      this.isAttached = true;
      this.error = null;
      this.context.writes.join(this.spec.collection, this);
      this.context.connection.attach(this);
    }
    let stopped = false;
    return () => {
      if (stopped) return;
      stopped = true;
      stop();
      if (this.listeners.size + this.updateListeners.size === 0) this.unused();
    };
  }

  get isUsed(): boolean {
    return this.listeners.size + this.updateListeners.size > 0;
  }

  /** Ends it. A later listener resumes from the last position. */
  close(): void {
    this.isAttached = false;
    this.context.connection.detach(this);
    this.leave();
  }

  /** The last answer of the server. */
  get rows(): readonly Row[] {
    return this.view.rows;
  }

  private leave(): void {
    for (const timer of this.graces.values()) this.context.clock.cancel(timer);
    this.graces.clear();
    this.context.writes.leave(this.spec.collection, this);
  }

  // Events of the connection

  protected members(): Record<string, unknown> {
    return specBody(this.spec);
  }

  override failed(error: RillbaseError): void {
    this.error = error;
    this.isAttached = false;
    this.leave();
    super.failed(error);
    if (this.listeners.size > 0) this.context.report(`query on "${this.spec.collection}"`, error);
    for (const listener of [...this.updateListeners]) listener({ kind: "failed", error });
  }

  protected override event(frame: EventFrame): Effect {
    const effect = super.event(frame);
    if (effect.kind === "changed" && this.context.writes.of(this.spec.collection).length > 0) {
      for (const { row } of effect.changes) this.newestVersions.set(row.key, row.version ?? 0);
    }
    return effect;
  }

  protected answerChanged(done: Done): void {
    if (done.kind === "replaced") {
      this.emitReplaced(done.before);
    } else {
      this.emit({ kind: "changes", changes: done.changes });
      // A document that is read by its id comes without its lookups.
      const fetched = this.spec.lookup === undefined ? done.changes : [];
      for (const { row } of fetched) if (row.isOmitted) this.complete(row);
    }
    this.catchUp();
  }

  private emitReplaced(before: readonly Row[]): void {
    const { rows } = this.view;
    if (this.isFirst) {
      this.isFirst = false;
      this.emit({ kind: "result", rows });
      return;
    }
    const byKey = new Map([...before, ...rows].map((row) => [row.key, row]));
    const changes = difference(before.map(shownRow), rows.map(shownRow)).flatMap((change) => {
      const row = byKey.get(this.keyOf(change, before, rows));
      return row === undefined ? [] : [{ type: change.type, row } satisfies Change];
    });
    if (changes.length > 0) this.emit({ kind: "changes", changes });
  }

  private keyOf(
    change: ItemChange<unknown>,
    before: readonly Row[],
    after: readonly Row[],
  ): string {
    return (change.index < 0 ? before[change.oldIndex] : after[change.index])?.key ?? "";
  }

  private emit(update: ServerUpdate): void {
    for (const listener of [...this.updateListeners]) listener(update);
  }

  /** Fetches a document that its event omitted. */
  private complete(row: Row): void {
    const put = (fetched: Row | undefined) => {
      const place = this.view.rows.findIndex(({ key }) => key === row.key);
      const current = this.view.rows[place];
      if (fetched === undefined || current === undefined || !current.isOmitted) return;
      if ((fetched.version ?? 0) < (current.version ?? 0)) return;
      this.view.replace(place, { ...current, document: fetched.document, isOmitted: false });
      this.schedule();
    };
    // A failure leaves the document as it was before; its next change brings it up to date.
    this.context.read(this.spec.collection, row.id).then(put, () => undefined);
  }

  // Pending writes

  pendingChanged(): void {
    if (this.context.writes.of(this.spec.collection).length === 0) this.newestVersions.clear();
    this.schedule();
  }

  confirmed(pending: Pending): void {
    if (this.error !== null || this.hasSeen(pending)) this.release(pending);
    else this.startGrace(pending);
    this.schedule();
  }

  private catchUp(): void {
    for (const pending of [...this.context.writes.of(this.spec.collection)]) {
      if (pending.confirmation !== undefined && this.hasSeen(pending)) this.release(pending);
    }
  }

  private hasSeen(pending: Pending): boolean {
    const confirmed = pending.confirmation?.version;
    const row = this.view.rows.find(({ key }) => key === pending.key);
    const received = Math.max(this.newestVersions.get(pending.key) ?? -1, row?.version ?? -1);
    if (pending.operation.kind === "delete") return this.view.hasResult && row === undefined;
    return confirmed !== undefined && received >= confirmed;
  }

  private release(pending: Pending): void {
    this.context.clock.cancel(this.graces.get(pending));
    this.graces.delete(pending);
    this.context.writes.release(pending, this);
  }

  private startGrace(pending: Pending): void {
    if (this.state !== "live" || this.graces.has(pending)) return;
    const timer = this.context.clock.after(CAUGHT_UP_MS, () => this.release(pending));
    this.graces.set(pending, timer);
  }

  /** Silence proves something only while the query is live. */
  private restartGraces(): void {
    for (const timer of this.graces.values()) this.context.clock.cancel(timer);
    this.graces.clear();
    for (const pending of this.context.writes.of(this.spec.collection)) {
      if (pending.confirmation !== undefined) this.startGrace(pending);
    }
  }

  // The snapshot for listeners

  protected override afterStateChange(): void {
    this.restartGraces();
  }

  protected show(): void {
    const { spec, view } = this;
    const pending = this.context.writes.of(spec.collection).filter((one) => {
      return one.confirmation === undefined || one.waiting.has(this);
    });
    const next = overlaid(view.shown, pending, spec);
    const changes = difference(this.shown, next);
    this.shown = next;
    const snapshot = this.snapshotOf(changes);
    if (changes.length === 0 && isSame(this.snapshot, snapshot)) return;
    this.snapshot = snapshot;
    for (const listener of [...this.listeners]) listener();
  }

  private snapshotOf(changes: readonly ItemChange<unknown>[]): QuerySnapshot<unknown> {
    const isSameList = changes.length === 0 && this.snapshot.items.length === this.shown.length;
    const items = isSameList ? this.snapshot.items : this.shown.map(({ item }) => item);
    return {
      documents: isSameList ? this.snapshot.documents : items.map(({ document }) => document),
      items,
      changes,
      state: this.state,
      hasAnswer: this.view.hasResult,
      hasPendingWrites: items.some(({ isPending }) => isPending),
      error: this.error,
    };
  }
}

function isSame(left: QuerySnapshot<unknown>, right: QuerySnapshot<unknown>): boolean {
  return (
    left.state === right.state &&
    left.hasAnswer === right.hasAnswer &&
    left.hasPendingWrites === right.hasPendingWrites &&
    left.error === right.error
  );
}
