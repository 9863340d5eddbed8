/** Documents with their metadata, as in the server's responses. */

import type { Plain } from "./local/paths.js";
import type { Document, Envelope } from "./types.js";

/**
 * A document that was written. `document` is null if the access rules let the caller write but not
 * read.
 */
export interface WrittenDocument<T> {
  readonly id: unknown;
  readonly version: number | null;
  readonly document: T | null;
}

export function envelopeOf<T extends Document>(body: unknown): Envelope<T> {
  const { id, version, created_at, updated_at, document } = body as Plain;
  return {
    id,
    version: Number(version),
    createdAt: dateOf(created_at),
    updatedAt: dateOf(updated_at),
    document: document as T,
  };
}

export function writtenOf<T extends Document>(id: unknown, body: unknown): WrittenDocument<T> {
  const { version = null, document = null } = (body ?? {}) as Partial<Envelope<T>>;
  return { id, version, document };
}

function dateOf(text: unknown): Date | null {
  return typeof text === "string" ? new Date(text) : text instanceof Date ? text : null;
}
