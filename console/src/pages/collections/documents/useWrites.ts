/** What the grid changes, with a way back: every deletion and edit can be undone for a moment. */

import { useMemo } from "react";
import type { Client } from "rillbase";
import { useToasts } from "../../../ui/toasts";
import type { Row } from "./useLiveDocuments";
import { keyOf, valueAt } from "./values";

type Plain = Record<string, unknown>;

/** The most operations that one bulk call takes here. */
const BATCH = 1_000;

export interface Writes {
  readonly save: (row: Row, path: string, value: unknown) => void;
  readonly remove: (rows: readonly Row[]) => Promise<void>;
  readonly updateMany: (filter: Plain, update: Plain) => Promise<void>;
  readonly deleteMany: (filter: Plain) => Promise<void>;
}

/**
 * Returns the writes of a grid. Rows that look others up hold what these are in the place of fields,
 * so what an undo brings back is read before it is changed.
 */
export function useWrites(client: Client, collection: string, looksUp: boolean): Writes {
  const { say, fail } = useToasts();
  return useMemo(() => {
    const documents = client.collection<Plain>(collection);
    async function own(rows: readonly Row[]): Promise<readonly Plain[]> {
      if (!looksUp) return rows.map(({ document }) => document);
      const found: Plain[] = [];
      for (const part of batches(rows)) {
        const ids = part.map(({ id }) => id);
        found.push(...(await documents.filter({ _id: { $in: ids } }).fetch()));
      }
      return found;
    }
    async function save(row: Row, path: string, value: unknown) {
      try {
        const [held] = await own([row]);
        const before = valueAt(held, path);
        await documents.update(row.id, { $set: { [path]: value } });
        say(`${path} of ${keyOf(row.id)} changed.`, () =>
          documents.update(
            row.id,
            before === undefined ? { $unset: { [path]: "" } } : { $set: { [path]: before } },
          ),
        );
      } catch (error) {
        fail(error);
      }
    }
    async function remove(rows: readonly Row[]) {
      const held = await own(rows);
      for (const part of batches(rows)) {
        const results = await documents.bulk(
          (steps) => {
            for (const { id } of part) steps.delete(id);
          },
          { ordered: false },
        );
        const refused = results.find(
          (result) => "error" in result && result.error.code !== "not_found",
        );
        if (refused !== undefined && "error" in refused) throw refused.error;
      }
      say(
        rows.length === 1 ? "Document deleted." : `${rows.length} documents deleted.`,
        async () => {
          for (const part of batches(held)) {
            await documents.bulk((steps) => {
              for (const document of part) steps.insert(document);
            });
          }
        },
      );
    }
    async function many(
      call: () => Promise<{ changed: number; isComplete: boolean }>,
      done: string,
    ) {
      let changed = 0;
      for (let isComplete = false; !isComplete; ) {
        const result = await call();
        changed += result.changed;
        isComplete = result.isComplete;
      }
      say(`${changed} ${changed === 1 ? "document" : "documents"} ${done}.`);
    }
    return {
      save,
      remove,
      updateMany: (filter, update) =>
        many(() => documents.updateMany(filter, update as never), "changed"),
      deleteMany: (filter) => many(() => documents.deleteMany(filter), "deleted"),
    };
  }, [client, collection, looksUp, say, fail]);
}

function batches<T>(rows: readonly T[]): (readonly T[])[] {
  const found: (readonly T[])[] = [];
  for (let begin = 0; begin < rows.length; begin += BATCH)
    found.push(rows.slice(begin, begin + BATCH));
  return found;
}
