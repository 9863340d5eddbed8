/** The server's validation errors of a definition. */

import { ServerError } from "rillbase";
import { failureOf } from "../../api/failure";
import type { ValidationError } from "../JsonEditor";
import { isSame, type Json } from "./exactJson";
import { valueAt } from "./pointers";

/** Returns an error's messages. Pointers begin below the member of the request, "" for its body. */
export function validationErrorsOf(error: unknown, member: string): ValidationError[] {
  if (!(error instanceof ServerError) || error.places.length === 0)
    return [{ pointer: "", message: failureOf(error).summary }];
  const prefix = member === "" ? "" : `/${member}`;
  return error.places.map(({ pointer, detail }) => ({
    pointer: pointer.startsWith(prefix) ? pointer.slice(prefix.length) : pointer,
    message: detail,
  }));
}

/** An error about a part that has changed since is no longer known to be one. */
export function stillValid(
  errors: readonly ValidationError[],
  rejected: Json,
  current: Json | undefined,
): readonly ValidationError[] {
  if (current === undefined) return errors;
  return errors.filter(({ pointer }) =>
    isSame(valueAt(rejected, pointer), valueAt(current, pointer)),
  );
}
