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
  /** Title and first detail in one line. */
  readonly summary: string;
}

const OFFLINE = "Rillbase is unreachable. Check that it is running and that you are online.";

export function failureOf(error: unknown): Failure {
  if (error instanceof ServerError) {
    const [first] = error.places;
    return {
      code: error.code,
      title: error.message,
      places: error.places,
      requestId: error.requestId,
      summary: first === undefined ? error.message : `${error.message} ${first.detail}`,
    };
  }
  if (error instanceof RillbaseError) {
    const title = error.code === "connection_lost" ? OFFLINE : error.message;
    return { code: error.code, title, places: [], requestId: undefined, summary: title };
  }
  const title = error instanceof Error ? error.message : String(error);
  return { code: "client_error", title, places: [], requestId: undefined, summary: title };
}
