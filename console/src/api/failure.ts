/** Converts any thrown value to a message for users. */

import { RillbaseError, ServerError } from "rillbase";

export interface Place {
  readonly pointer: string;
  readonly detail: string;
}

export interface Failure {
  readonly code: string;
  readonly title: string;
  readonly places: readonly Place[];
  readonly requestId: string | undefined;
  /** The title and the first fields with their messages, in one line. */
  readonly summary: string;
}

const OFFLINE = "Rillbase is unreachable. Check that it is running and that you are online.";

export function failureOf(error: unknown): Failure {
  if (error instanceof ServerError) {
    return {
      code: error.code,
      title: error.message,
      places: error.places,
      requestId: error.requestId,
      summary: summaryOf(error.message, error.places),
    };
  }
  if (error instanceof RillbaseError) {
    const title = error.code === "connection_lost" ? OFFLINE : error.message;
    return { code: error.code, title, places: [], requestId: undefined, summary: title };
  }
  const title = error instanceof Error ? error.message : String(error);
  return { code: "client_error", title, places: [], requestId: undefined, summary: title };
}

const MAX_NAMED_PLACES = 3;

/** A field and its message, such as `price: expected a number`. */
export function placeText({ pointer, detail }: Place): string {
  const path = fieldOf(pointer);
  return path === "" || detail.startsWith(`${path}: `) ? detail : `${path}: ${detail}`;
}

/** The path of a pointer, with dots. */
function fieldOf(pointer: string): string {
  const names = pointer.replace(/^\//, "").split("/");
  return names.map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~")).join(".");
}

/** The title is often that of the only field, and is not repeated. */
function summaryOf(title: string, places: readonly Place[]): string {
  const texts = places.slice(0, MAX_NAMED_PLACES).map(placeText);
  if (places.length > texts.length) texts.push(`and ${places.length - texts.length} more`);
  if (texts.length === 0) return title;
  const text = texts.join("; ");
  if (places.every(({ detail }) => detail === title)) return text;
  return /[.!?:]$/.test(title) ? `${title} ${text}` : `${title}: ${text}`;
}
