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

/** A change that the server has told, or the first answer. */
export type Told =
  | { readonly kind: "result"; readonly rows: readonly Row[] }
  | { readonly kind: "changes"; readonly changes: readonly Change[] }
  | { readonly kind: "failed"; readonly error: RillbaseError };

export interface Surroundings {
  readonly connection: Connection;
  readonly writes: LocalWrites;
  readonly clock: Clock;
  /** Reads a document that was too large to be sent with its change. */
  readonly read: (collection: string, id: unknown) => Promise<Row | undefined>;
  readonly report: FailureReport;
}

/**
 * Silence for so long proves that a confirmed write does not concern a query: the server says that
 * it is behind sooner than that.
 */
const CAUGHT_UP_MS = 3_000;

export class LiveQuery extends Followed implements Holder {
  /** What listeners were shown last. A new object whenever it is not the same. */
  snapshot: QuerySnapshot<unknown> = NO_ANSWER;
  private shown: Shown[] = [];
  private isFirst = true;
  private readonly listeners = new Set<() => void>();
  private readonly tellings = new Set<(told: Told) => void>();
  /** The newest version heard of each document while writes are pending. */
  private readonly heard = new Map<string, number>();
  private readonly graces = new Map<Pending, Timer>();
  private isAttached = false;

  constructor(
    readonly spec: QuerySpec,
    private readonly around: Surroundings,
    private readonly unused: () => void,
  ) {
    super();
    this.view.versionsTell = spec.lookup === undefined;
  }

  /** Calls the listener whenever `snapshot` has changed. Returns how to stop. */
  listen(listener: () => void): () => void {
    this.listeners.add(listener);
    return this.begin(() => this.listeners.delete(listener));
  }

  /** Calls the listener with the answer, if there is one, and then whatever the server tells. */
  told(listener: (told: Told) => void): () => void {
    this.tellings.add(listener);
    if (this.view.hasResult) listener({ kind: "result", rows: this.view.rows });
    return this.begin(() => this.tellings.delete(listener));
  }

  private begin(stop: () => void): () => void {
    if (!this.isAttached) {
      this.isAttached = true;
      this.error = null;
      this.around.writes.join(this.spec.collection, this);
      this.around.connection.attach(this);
    }
    let stopped = false;
    return () => {
      if (stopped) return;
      stopped = true;
      stop();
      if (this.listeners.size + this.tellings.size === 0) this.unused();
    };
  }

  get isUsed(): boolean {
    return this.listeners.size + this.tellings.size > 0;
  }

  /** Ends it. Whoever listens later begins where it was. */
  close(): void {
    this.isAttached = false;
    this.around.connection.detach(this);
    this.leave();
  }

  /** The answer as the server told it last. */
  get rows(): readonly Row[] {
    return this.view.rows;
  }

  private leave(): void {
    for (const timer of this.graces.values()) this.around.clock.cancel(timer);
    this.graces.clear();
    this.around.writes.leave(this.spec.collection, this);
  }

  // What the connection tells

  protected members(): Record<string, unknown> {
    return specBody(this.spec);
  }

  override failed(error: RillbaseError): void {
    this.error = error;
    this.isAttached = false;
    this.leave();
    super.failed(error);
    if (this.listeners.size > 0) this.around.report(`query on "${this.spec.collection}"`, error);
    for (const tell of [...this.tellings]) tell({ kind: "failed", error });
  }

  protected override event(frame: EventFrame): Effect {
    const effect = super.event(frame);
    if (effect.kind === "changed" && this.around.writes.of(this.spec.collection).length > 0) {
      for (const { row } of effect.changes) this.heard.set(row.key, row.version ?? 0);
    }
    return effect;
  }

  protected took(done: Done): void {
    if (done.kind === "replaced") {
      this.tellReplaced(done.before);
    } else {
      this.tell({ kind: "changes", changes: done.changes });
      // What is looked up with a document does not come with it when it is read by its id.
      const fetched = this.spec.lookup === undefined ? done.changes : [];
      for (const { row } of fetched) if (row.isOmitted) this.complete(row);
    }
    this.catchUp();
  }

  private tellReplaced(before: readonly Row[]): void {
    const { rows } = this.view;
    if (this.isFirst) {
      this.isFirst = false;
      this.tell({ kind: "result", rows });
      return;
    }
    const byKey = new Map([...before, ...rows].map((row) => [row.key, row]));
    const changes = difference(before.map(shownRow), rows.map(shownRow)).flatMap((change) => {
      const row = byKey.get(this.keyOf(change, before, rows));
      return row === undefined ? [] : [{ type: change.type, row } satisfies Change];
    });
    if (changes.length > 0) this.tell({ kind: "changes", changes });
  }

  private keyOf(
    change: ItemChange<unknown>,
    before: readonly Row[],
    after: readonly Row[],
  ): string {
    return (change.index < 0 ? before[change.oldIndex] : after[change.index])?.key ?? "";
  }

  private tell(told: Told): void {
    for (const listener of [...this.tellings]) listener(told);
  }

  /** Fetches a document that its event left out. */
  private complete(row: Row): void {
    const put = (found: Row | undefined) => {
      const place = this.view.rows.findIndex(({ key }) => key === row.key);
      const held = this.view.rows[place];
      if (found === undefined || held === undefined || !held.isOmitted) return;
      if ((found.version ?? 0) < (held.version ?? 0)) return;
      this.view.rows[place] = { ...held, document: found.document, isOmitted: false };
      this.schedule();
    };
    // A failure leaves the document as it was before; its next change brings it up to date.
    this.around.read(this.spec.collection, row.id).then(put, () => undefined);
  }

  // Pending writes

  pendingChanged(): void {
    if (this.around.writes.of(this.spec.collection).length === 0) this.heard.clear();
    this.schedule();
  }

  confirmed(pending: Pending): void {
    if (this.error !== null || this.hasSeen(pending)) this.release(pending);
    else this.startGrace(pending);
    this.schedule();
  }

  private catchUp(): void {
    for (const pending of [...this.around.writes.of(this.spec.collection)]) {
      if (pending.confirmation !== undefined && this.hasSeen(pending)) this.release(pending);
    }
  }

  private hasSeen(pending: Pending): boolean {
    const wanted = pending.confirmation?.version;
    const row = this.view.rows.find(({ key }) => key === pending.key);
    const heard = Math.max(this.heard.get(pending.key) ?? -1, row?.version ?? -1);
    if (pending.operation.kind === "delete") return this.view.hasResult && row === undefined;
    return wanted !== undefined && heard >= wanted;
  }

  private release(pending: Pending): void {
    this.around.clock.cancel(this.graces.get(pending));
    this.graces.delete(pending);
    this.around.writes.release(pending, this);
  }

  private startGrace(pending: Pending): void {
    if (this.state !== "live" || this.graces.has(pending)) return;
    const timer = this.around.clock.after(CAUGHT_UP_MS, () => this.release(pending));
    this.graces.set(pending, timer);
  }

  /** Silence proves something only while the query is live. */
  private restartGraces(): void {
    for (const timer of this.graces.values()) this.around.clock.cancel(timer);
    this.graces.clear();
    for (const pending of this.around.writes.of(this.spec.collection)) {
      if (pending.confirmation !== undefined) this.startGrace(pending);
    }
  }

  // The snapshot for listeners

  protected override stateTurned(): void {
    this.restartGraces();
  }

  protected show(): void {
    const { spec, view } = this;
    const pending = this.around.writes.of(spec.collection).filter((one) => {
      return one.confirmation === undefined || one.waiting.has(this);
    });
    const next = overlaid(view.rows, pending, spec);
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
