/** Features that only Node.js supports. */

import { open, readFile, rename } from "node:fs/promises";
import type { QueueStorage } from "../writes/storage.js";

/** Keeps the queue in a file, which is replaced as a whole and synced before that. */
export function fileQueue(path: string): QueueStorage {
  return {
    load: async () => {
      try {
        return await readFile(path, "utf8");
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
        throw error;
      }
    },
    save: async (text) => {
      const next = `${path}.next`;
      const file = await open(next, "w", 0o600);
      try {
        await file.writeFile(text);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(next, path);
    },
  };
}
