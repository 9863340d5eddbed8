/** Links with a token: the purpose of each, and whether one is still valid. */

import { ServerError } from "rillbase";

export type LinkPurpose = "sign-in" | "verify-email" | "reset-password" | "invitation";

const TOKEN = /^[A-Za-z0-9_-]{43}$/;
const GONE = 410;

/** Returns the purpose of the link with this path. */
export function purposeOf(path: string): LinkPurpose {
  const name = path.slice(1);
  return name === "sign-in" || name === "verify-email" || name === "reset-password"
    ? name
    : "invitation";
}

/** Returns the token in the address's fragment, or null if it is missing or malformed. */
export function tokenOf(hash: string): string | null {
  const token = new URLSearchParams(hash.slice(1)).get("token");
  return token !== null && TOKEN.test(token) ? token : null;
}

/** Returns whether the server rejected the link itself, and not what was sent with it. */
export function isExpired(error: unknown): boolean {
  if (!(error instanceof ServerError)) return false;
  return error.status === GONE || error.places.some(({ pointer }) => pointer === "/token");
}
