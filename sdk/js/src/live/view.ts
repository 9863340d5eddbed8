/**
 * Computes the answer from a subscription's frames, as the server knows it.
 *
 * It relies on the protocol's guarantees: `seq` has no gaps, groups are applied as a whole, and the
 * resume token is taken with the last frame that it covers. It does not depend on connections or
 * time.
 */

import { idKey } from "../ejson/path.js";
import { compareIds } from "../local/compare.js";
import { type Shown, shownRow } from "../local/overlay.js";
import type { EnvelopeFrame, EventFrame, ResultFrame } from "./frames.js";

/** A document in an answer. */
export interface Row {
  /** Equal for equal ids. */
  readonly key: string;
  readonly id: unknown;
  readonly version: number | null;
  readonly document: unknown;
  /** The document was too large to be sent with the change: it is as it was before. */
  readonly isOmitted: boolean;
}

/** A change of the answer. */
export interface Change {
  readonly type: "add" | "change" | "move" | "remove";
  readonly row: Row;
  /** For `remove`: whether the document is gone or only no longer part of the answer. */
  readonly reason?: "deleted" | "left";
}

/** What a frame did to the view. */
export type Effect =
  | { readonly kind: "nothing" }
  | { readonly kind: "replaced"; readonly before: readonly Row[] }
  | { readonly kind: "changed"; readonly changes: readonly Change[] }
  /** The frames are inconsistent: subscribe again, without a resume token. */
  | { readonly kind: "broken"; readonly why: string };

const NOTHING: Effect = { kind: "nothing" };

export class View {
  /** In the order of the answer. */
  rows: Row[] = [];
  /** The same rows as they are shown; they change with `rows`, so that a change costs one of them. */
  shown: Shown[] = [];
  /** Whether there has been a result. */
  hasResult = false;
  /** Whether rows of one version are equal. Lookups change without the document. */
  areVersionsReliable = true;
  /** The position from which to resume after an interruption. */
  resume: string | undefined;
  private seq = 0;
  private parts: Row[] = [];
  private group: EventFrame[] = [];

  /** Prepares for a new connection: incomplete groups and results are discarded and sent again. */
  interrupted(): void {
    this.group = [];
    this.parts = [];
  }

  /** Discards the position; a new result follows. The current rows stay until then. */
  reset(): void {
    this.interrupted();
    this.seq = 0;
    this.resume = undefined;
  }

  /** For subscriptions whose rows are passed on and not collected. */
  discardRows(): void {
    this.rows = [];
    this.shown = [];
  }

  result(frame: ResultFrame): Effect {
    if (frame.part === 0) this.parts = [];
    for (const item of frame.items) this.parts.push(rowOf(item));
    if (!frame.last) return NOTHING;
    const before = this.rows;
    const rowsBefore = new Map(before.map((row) => [row.key, row]));
    // An unchanged row stays the same object, so that it is not rendered again.
    this.rows = this.areVersionsReliable
      ? this.parts.map((row) => sameOr(rowsBefore.get(row.key), row))
      : this.parts;
    this.shown = this.rows.map(shownRow);
    this.parts = [];
    this.hasResult = true;
    this.resume = frame.resume ?? this.resume;
    return { kind: "replaced", before };
  }

  ready(resume: string | undefined): void {
    this.resume = resume ?? this.resume;
  }

  /** Applies an event; the members of a group take effect together with the last of them. */
  event(frame: EventFrame): Effect {
    this.group.push(frame);
    const { txn } = frame;
    if (txn !== undefined && txn.index < txn.count - 1) return NOTHING;
    const group = this.group;
    this.group = [];
    const why = this.complaint(group);
    if (why !== undefined) return { kind: "broken", why };
    const changes = group.map((member) => this.apply(member));
    this.seq += group.length;
    this.resume = frame.resume ?? this.resume;
    return { kind: "changed", changes };
  }

  /** Replaces the row at a place by one with the same key. */
  replace(place: number, row: Row): void {
    this.rows[place] = row;
    this.shown[place] = shownRow(row);
  }

  private complaint(group: readonly EventFrame[]): string | undefined {
    const first = group[0]?.seq;
    // After a resume the numbering continues from the token, which a reset may have restarted.
    if (first !== this.seq + 1) return `event ${first} followed event ${this.seq}`;
    const inOrder = group.every((member, place) => member.seq === first + place);
    return inOrder ? undefined : "a group has a gap";
  }

  private apply(frame: EventFrame): Change {
    const key = idKey(frame.key);
    const place = this.rows.findIndex((row) => row.key === key);
    const current = place < 0 ? undefined : this.rows[place];
    if (current !== undefined) {
      this.rows.splice(place, 1);
      this.shown.splice(place, 1);
    }
    if (frame.match === "remove") {
      const removed = current ?? rowOf({ id: frame.key, version: null, document: undefined });
      const row = { ...removed, version: frame.version };
      return { type: "remove", row, ...(frame.reason && { reason: frame.reason }) };
    }
    const row: Row = {
      key,
      id: frame.key,
      version: frame.version,
      document: frame.omitted === undefined ? frame.document : current?.document,
      isOmitted: frame.omitted !== undefined,
    };
    const index = frame.index ?? this.placeById(row.id);
    this.rows.splice(index, 0, row);
    this.shown.splice(index, 0, shownRow(row));
    if (current === undefined) return { type: "add", row };
    return { type: frame.match === "changeIndex" ? "move" : "change", row };
  }

  /** Answers without a window are ordered by id. */
  private placeById(id: unknown): number {
    let low = 0;
    let high = this.rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (compareIds(this.rows[middle]?.id, id) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

export function rowOf(item: EnvelopeFrame): Row {
  const { id, version, document } = item;
  return { key: idKey(id), id, version, document, isOmitted: false };
}

function sameOr(before: Row | undefined, row: Row): Row {
  const same = before !== undefined && before.version !== null && before.version === row.version;
  return same && !before.isOmitted ? before : row;
}
