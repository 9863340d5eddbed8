/** Several texts in one parameter of an address, separated by spaces. */

/** Returns the texts as one. Only the last may contain spaces as they are. */
export function joinWords(words: readonly string[], rest?: string): string {
  const written = words.map((word) => encodeURIComponent(word));
  return (rest === undefined ? written : [...written, rest]).join(" ");
}

/** Returns the first `count` texts and what follows them; null if they cannot be read. */
export function splitWords(
  text: string,
  count: number,
): { readonly words: readonly string[]; readonly rest: string } | null {
  const parts = text.split(" ");
  if (parts.length < count) return null;
  try {
    const words = parts.slice(0, count).map((part) => decodeURIComponent(part));
    return { words, rest: parts.slice(count).join(" ") };
  } catch {
    return null;
  }
}

/** Returns what a text reads as; undefined if that throws an error. */
export function readOr<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
