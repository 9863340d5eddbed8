/** Where writes wait while there is no connection. */

/** Keeps one text. `save` resolves when the text would survive a crash of the program. */
export interface QueueStorage {
  load(): Promise<string | null>;
  save(text: string): Promise<void>;
}

/**
 * Keeps the queue in the browser's local storage. Each open page needs a name of its own: pages
 * with one name would overwrite each other's queue.
 */
export function localStorageQueue(name = "rillbase:queue"): QueueStorage {
  return {
    load: async () => localStorage.getItem(name),
    save: async (text) => localStorage.setItem(name, text),
  };
}

/** Keeps the queue for as long as the program runs. */
export function memoryQueue(): QueueStorage {
  let kept: string | null = null;
  return {
    load: async () => kept,
    save: async (text) => {
      kept = text;
    },
  };
}
