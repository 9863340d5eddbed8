/** Where queued writes are stored while there is no connection. */

/** Stores one text. `save` resolves once the text would survive a crash of the program. */
export interface QueueStorage {
  load(): Promise<string | null>;
  save(text: string): Promise<void>;
}

/**
 * Stores the queue in the browser's local storage. Each open page needs a separate name: pages with
 * the same name would overwrite each other's queue.
 */
export function localStorageQueue(name = "rillbase:queue"): QueueStorage {
  return {
    load: async () => localStorage.getItem(name),
    save: async (text) => localStorage.setItem(name, text),
  };
}

/** Stores the queue for as long as the program runs. */
export function memoryQueue(): QueueStorage {
  let stored: string | null = null;
  return {
    load: async () => stored,
    save: async (text) => {
      stored = text;
    },
  };
}
