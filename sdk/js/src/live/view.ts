/**
 * Computes the answer from a subscription's frames, as the server knows it.
 *
 * It relies on the protocol's guarantees: `seq` has no gaps, groups are applied as a whole, and the
 * resume token is taken with the last frame that it covers. It does not depend on connections or
 * time.
 */

import { idKey } from "../ejson/path.js";
import { compareIds } from "../local/compare.js";
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

/** A change of the answer that the server has told. */
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
  /** The frames do not fit together: subscribe anew, without a resume token. */
  | { readonly kind: "broken"; readonly why: string };

const NOTHING: Effect = { kind: "nothing" };

export class View {
  /** In the order of the answer. */
  rows: Row[] = [];
  /** Whether there has been a result. */
  hasResult = false;
  /** Whether rows of one version are the same. What is looked up changes without the document. */
  versionsTell = true;
  /** Where to go on from after an interruption. */
  resume: string | undefined;
  private seq = 0;
  private parts: Row[] = [];
  private group: EventFrame[] = [];

  /** Prepares for frames of a new connection: what was interrupted is forgotten, it comes again. */
  interrupted(): void {
    this.group = [];
    this.parts = [];
  }

  /** Forgets where it was; a new result follows. What was shown stays until then. */
  reset(): void {
    this.interrupted();
    this.seq = 0;
    this.resume = undefined;
  }

  result(frame: ResultFrame): Effect {
    if (frame.part === 0) this.parts = [];
    for (const item of frame.items) this.parts.push(rowOf(item));
    if (!frame.last) return NOTHING;
    const before = this.rows;
    const held = new Map(before.map((row) => [row.key, row]));
    // What has not changed stays the same object, so that nobody draws it again.
    this.rows = this.versionsTell
      ? this.parts.map((row) => sameOr(held.get(row.key), row))
      : this.parts;
    this.parts = [];
    this.hasResult = true;
    this.resume = frame.resume ?? this.resume;
    return { kind: "replaced", before };
  }

  ready(resume: string | undefined): void {
    this.resume = resume ?? this.resume;
  }

  /** Takes an event; the members of a group take effect together with the last of them. */
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

  private complaint(group: readonly EventFrame[]): string | undefined {
    const first = group[0]?.seq;
    // After a resume the numbering goes on from the token, which a reset may have restarted.
    if (first !== this.seq + 1) return `event ${first} followed event ${this.seq}`;
    const inOrder = group.every((member, place) => member.seq === first + place);
    return inOrder ? undefined : "a group has a gap";
  }

  private apply(frame: EventFrame): Change {
    const key = idKey(frame.key);
    const place = this.rows.findIndex((row) => row.key === key);
    const held = place < 0 ? undefined : this.rows[place];
    if (held !== undefined) this.rows.splice(place, 1);
    if (frame.match === "remove") {
      const gone = held ?? rowOf({ id: frame.key, version: null, document: undefined });
      const row = { ...gone, version: frame.version };
      return { type: "remove", row, ...(frame.reason && { reason: frame.reason }) };
    }
    const row: Row = {
      key,
      id: frame.key,
      version: frame.version,
      document: frame.omitted === undefined ? frame.document : held?.document,
      isOmitted: frame.omitted !== undefined,
    };
    this.rows.splice(frame.index ?? this.placeById(row.id), 0, row);
    if (held === undefined) return { type: "add", row };
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
