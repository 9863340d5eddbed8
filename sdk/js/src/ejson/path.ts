/** A document's `_id` in a URL. */

import { stringify } from "./encode.js";
import { ObjectId } from "./types.js";

const HEX_24 = /^[0-9a-fA-F]{24}$/;

/** Returns an `_id` as a segment of a URL's path. */
export function idSegment(id: unknown): string {
  if (id instanceof ObjectId) return id.hex;
  if (typeof id === "string" && speaksForItself(id)) return encodeURIComponent(id);
  return `~${encodeURIComponent(stringify(id))}`;
}

function speaksForItself(id: string): boolean {
  return id !== "" && id !== "." && id !== ".." && !id.startsWith("~") && !HEX_24.test(id);
}

/** Returns a text that is equal for equal ids, as a key of maps. */
export function idKey(id: unknown): string {
  return typeof id === "string" ? `s${id}` : `e${stringify(id)}`;
}
