/** Lookups as they are edited, and the rows that they add below a row. */

import type { Lookup } from "rillbase";
import { joinWords, splitWords } from "../../../shell/addressWords";
import { idText } from "./values";

type Plain = Record<string, unknown>;

/** A lookup while it is being typed. Without a name it is shown under its collection's. */
export interface Chosen {
  readonly key: string;
  readonly from: string;
  readonly local: string;
  readonly as: string;
}

export function newLookup(from: string): Chosen {
  return { key: crypto.randomUUID(), from, local: "", as: "" };
}

/** The maximum number of lookups of a query. */
export const MAX_LOOKUPS = 8;

/** Returns a lookup as a parameter of an address. */
export function lookupText({ from, local, as }: Chosen): string {
  return joinWords([from, local, as]);
}

/** Returns the lookups in an address, without those that cannot be read. */
export function lookupsFrom(texts: readonly string[]): Chosen[] {
  return texts.slice(0, MAX_LOOKUPS).flatMap((text, place) => {
    const [from = "", local = "", as = ""] = splitWords(text, 3)?.words ?? [];
    return from === "" ? [] : [{ key: String(place), from, local, as }];
  });
}

/** Returns the complete lookups; undefined if there are none. */
export function lookupsOf(chosen: readonly Chosen[]): readonly Lookup[] | undefined {
  const paths = chosen
    .filter(({ from, local }) => from !== "" && local.trim() !== "")
    .map(({ from, local, as }) => ({ from, local: local.trim(), as: as.trim() || from }));
  return paths.length === 0 ? undefined : paths;
}

/** A line below a row: a document that the row refers to, or a word instead. */
export interface Line {
  readonly key: string;
  readonly name: string;
  readonly document: Plain | null;
  readonly word: string;
}

/** The maximum number of documents of a list that are shown. */
const MAX_LINES = 8;

/** Returns what is shown below a row, under the names of its lookups. */
export function linesOf(document: Plain, names: readonly string[]): readonly Line[] {
  return names.flatMap((name) => {
    const value = document[name];
    if (!Array.isArray(value)) return [lineOf(name, value, name)];
    if (value.length === 0) return [{ key: name, name, document: null, word: "none of them" }];
    const shown = value.slice(0, MAX_LINES).map((one, at) => lineOf(name, one, `${name} ${at}`));
    const rest = value.length - shown.length;
    if (rest === 0) return shown;
    return [...shown, { key: `${name} …`, name, document: null, word: `and ${rest} more` }];
  });
}

function lineOf(name: string, value: unknown, key: string): Line {
  const isDocument = typeof value === "object" && value !== null;
  return { key, name, document: isDocument ? (value as Plain) : null, word: "nothing" };
}

/** Returns the referenced documents of a row as text, for screen readers. */
export function labelOf({ name, document, word }: Line): string {
  return `${name}: ${document === null ? word : idText(document._id)}`;
}
