/** The writes of the grid. Each edit and deletion can be undone for a few seconds. */

import { useMemo } from "react";
import type { Client, Collection } from "rillbase";
import { failureOf } from "../../../api/failure";
import { useToasts } from "../../../ui/toasts";
import { counted } from "../../../ui/units";
import { type Edit, type Unsaved, writeField } from "./cellWrite";
import type { Row } from "./useLiveDocuments";
import { idText } from "./values";

type Plain = Record<string, unknown>;
type Documents = Collection<Plain>;

/** The maximum number of operations in one bulk call. */
const BATCH = 1_000;

export interface Writes {
  /** Writes a field, or returns why it was not written: another user's change, or the server's reason. */
  readonly save: (row: Row, edit: Edit) => Promise<Unsaved | null>;
  readonly remove: (rows: readonly Row[]) => Promise<void>;
  readonly updateMany: (filter: Plain, update: Plain) => Promise<void>;
  readonly deleteMany: (filter: Plain) => Promise<void>;
}

/**
 * Returns the writes of a grid. A row with lookups holds documents of other collections in place of
 * its own fields, so the originals are read before they are deleted, for the undo.
 */
export function useWrites(client: Client, collection: string, looksUp: boolean): Writes {
  const { showMessage } = useToasts();
  return useMemo(() => {
    const documents = client.collection<Plain>(collection);
    const originals = async (rows: readonly Row[]) =>
      looksUp ? read(documents, rows) : rows.map(({ document }) => document);

    async function save(row: Row, edit: Edit): Promise<Unsaved | null> {
      const { path, before } = edit;
      try {
        const conflict = await writeField(documents, row, edit);
        if (conflict !== null) return conflict;
        const undo =
          before === undefined ? { $unset: { [path]: "" } } : { $set: { [path]: before } };
        showMessage(`${path} of ${idText(row.id)} changed.`, () => documents.update(row.id, undo));
      } catch (error) {
        return { reason: failureOf(error).summary };
      }
      return null;
    }
    async function remove(rows: readonly Row[]) {
      const removed = await originals(rows);
      await deleteRows(documents, rows);
      const text =
        rows.length === 1 ? "Document deleted." : `${counted(rows.length, "document")} deleted.`;
      showMessage(text, () => insertAll(documents, removed));
    }
    async function report(calls: Promise<number>, verb: string) {
      const changed = await calls;
      showMessage(`${counted(changed, "document")} ${verb}.`);
    }
    return {
      save,
      remove,
      updateMany: (filter, update) =>
        report(
          untilComplete(() => documents.updateMany(filter, update as never)),
          "changed",
        ),
      deleteMany: (filter) =>
        report(
          untilComplete(() => documents.deleteMany(filter)),
          "deleted",
        ),
    };
  }, [client, collection, looksUp, showMessage]);
}

async function read(documents: Documents, rows: readonly Row[]): Promise<readonly Plain[]> {
  const read: Plain[] = [];
  for (const batch of batches(rows)) {
    const ids = batch.map(({ id }) => id);
    read.push(...(await documents.filter({ _id: { $in: ids } }).fetch()));
  }
  return read;
}

/** Deletes rows. Rows that another client has deleted already are no error. */
async function deleteRows(documents: Documents, rows: readonly Row[]): Promise<void> {
  for (const batch of batches(rows)) {
    const results = await documents.bulk(
      (steps) => {
        for (const { id } of batch) steps.delete(id);
      },
      { ordered: false },
    );
    for (const result of results)
      if ("error" in result && result.error.code !== "not_found") throw result.error;
  }
}

async function insertAll(documents: Documents, inserted: readonly Plain[]): Promise<void> {
  for (const batch of batches(inserted)) {
    await documents.bulk((steps) => {
      for (const document of batch) steps.insert(document);
    });
  }
}

interface ManyResult {
  readonly changed: number;
  readonly isComplete: boolean;
}

/** Repeats a bounded call until it has changed everything; returns the number of changes. */
async function untilComplete(call: () => Promise<ManyResult>): Promise<number> {
  let changed = 0;
  for (let isComplete = false; !isComplete; ) {
    const result = await call();
    changed += result.changed;
    isComplete = result.isComplete;
  }
  return changed;
}

function batches<T>(rows: readonly T[]): (readonly T[])[] {
  const parts: (readonly T[])[] = [];
  for (let begin = 0; begin < rows.length; begin += BATCH)
    parts.push(rows.slice(begin, begin + BATCH));
  return parts;
}
