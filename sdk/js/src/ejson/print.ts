/** Extended JSON as people write it. */

import { encode } from "./encode.js";
import { literalOf } from "./literals.js";

/**
 * Returns a text that `parseTyped` and the server read as the same value. Numbers are plain where
 * that keeps their type: `3.0`, `9007199254740993`. With an indent, the text has several lines.
 */
export function printTyped(value: unknown, indent = 0): string {
  return printed(encode(value), indent, "\n");
}

function printed(value: unknown, indent: number, newline: string): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const inner = newline + " ".repeat(indent);
  const list = (opening: string, items: readonly string[], closing: string) => {
    if (items.length === 0) return opening + closing;
    if (indent === 0) return opening + items.join(",") + closing;
    return opening + inner + items.join(`,${inner}`) + newline + closing;
  };
  if (Array.isArray(value)) {
    return list(
      "[",
      value.map((item) => printed(item, indent, inner)),
      "]",
    );
  }
  const entries = Object.entries(value);
  const [[name, member] = ["", undefined]] = entries;
  const literal = entries.length === 1 ? literalOf(name, member) : undefined;
  if (literal !== undefined) return literal;
  const colon = indent === 0 ? ":" : ": ";
  const pairs = entries.map(([key, item]) => {
    // The milliseconds of a date are no value of their own.
    const text = key === "$date" ? JSON.stringify(item) : printed(item, indent, inner);
    return JSON.stringify(key) + colon + text;
  });
  return list("{", pairs, "}");
}
