/** Writes one field, unless another user has changed it since editing began. */

import { type Collection, ServerError } from "rillbase";
import type { Row } from "./useLiveDocuments";
import { isSame, valueAt } from "./values";

type Plain = Record<string, unknown>;

/** A document as it was read. */
type Versioned = Pick<Row, "version" | "document">;

/** A value that was typed over another one. */
export interface Edit {
  readonly path: string;
  /** The value when editing began. */
  readonly before: unknown;
  readonly value: unknown;
  /** The document with which an earlier attempt conflicted: the row may not show it yet. */
  readonly conflicting?: Versioned;
}

/** What another user wrote; undefined if the field was removed. */
export interface Conflict {
  readonly current: unknown;
  readonly conflicting: Versioned;
}

/** The server has not accepted an edit, and why. */
export interface Rejection {
  readonly reason: string;
}

/** Why an edit was not saved. */
export type Unsaved = Conflict | Rejection;

/** Other fields of the document may change as often between reading and writing it. */
const MAX_ATTEMPTS = 5;

/** Writes the field, or returns what it was changed to. The row is as the user sees it. */
export async function writeField(
  documents: Collection<Plain>,
  row: Row,
  { path, before, value, conflicting }: Edit,
): Promise<Conflict | null> {
  const shown = newerOf(row, conflicting);
  // Rows with lookups have no version.
  let latest: Versioned | null = shown.version === null ? await documents.get(row.id) : shown;
  for (let attempt = 1; ; attempt += 1) {
    if (latest !== null) {
      const current = fieldOf(latest.document, path);
      if (isSame(current, value)) return null;
      if (!isSame(current, before)) return { current, conflicting: latest };
    }
    const condition =
      latest === null || latest.version === null ? {} : { ifVersion: latest.version };
    try {
      await documents.update(row.id, { $set: { [path]: value } }, condition);
      return null;
    } catch (error) {
      if (!isOutdated(error) || attempt === MAX_ATTEMPTS) throw error;
    }
    latest = await documents.get(row.id);
  }
}

function newerOf(row: Row, conflicting: Versioned | undefined): Versioned {
  if (conflicting === undefined || row.version === null) return row;
  return (conflicting.version ?? 0) > row.version ? conflicting : row;
}

function fieldOf(document: Plain, path: string): unknown {
  return Object.hasOwn(document, path) ? document[path] : valueAt(document, path);
}

function isOutdated(error: unknown): boolean {
  return error instanceof ServerError && error.code === "precondition_failed";
}
