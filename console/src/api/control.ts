/**
 * Calls of the control plane with the session's cookie.
 *
 * Changing calls carry the CSRF token, which is held in memory alone and fetched with the session,
 * and an idempotency key. A listener is notified when the session is rejected.
 */

import { ConnectionError, type Problem, ServerError } from "rillbase";
import { parseAnswer } from "../ui/definition/exactJson";

let csrfToken = "";
let sessionEnded = () => {};

export function holdCsrf(token: string | null): void {
  csrfToken = token ?? "";
}

export function onSessionEnd(listener: () => void): void {
  sessionEnded = listener;
}

export interface Call {
  readonly method?: "GET" | "POST" | "PATCH" | "PUT" | "DELETE";
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
  readonly signal?: AbortSignal;
}

export interface Answered<T> {
  readonly body: T;
  /** The body as it was received, with the way in which its numbers are written. */
  readonly text: string;
  readonly etag: string | null;
}

/** Returns the answer with its ETag. */
export async function ask<T>(path: string, call: Call = {}): Promise<Answered<T>> {
  const { method = "GET", body, headers = {}, signal } = call;
  const init: RequestInit = { method, credentials: "same-origin", headers: { ...headers } };
  const sent = init.headers as Record<string, string>;
  if (method !== "GET") {
    sent["X-CSRF-Token"] = csrfToken;
    sent["Idempotency-Key"] = crypto.randomUUID();
  }
  if (body !== undefined) {
    sent["Content-Type"] = "application/json";
    init.body = JSON.stringify(body);
  }
  if (signal !== undefined) init.signal = signal;
  const answer = await reached(path, init);
  const text = await answer.text();
  if (!answer.ok) throw refused(answer, text, path);
  const value = (text === "" ? null : parseAnswer(text)) as T;
  return { body: value, text, etag: answer.headers.get("ETag") };
}

/** Returns the body of the answer. */
export async function call<T>(path: string, options: Call = {}): Promise<T> {
  return (await ask<T>(path, options)).body;
}

/** The headers that make a call of the data plane one of this session. */
export function sessionHeaders(tenant: string): Record<string, string> {
  return { "Rillbase-Tenant": tenant, "X-CSRF-Token": csrfToken };
}

export interface Page<T> {
  readonly items: readonly T[];
  readonly next_cursor: string | null;
}

const MAX_PAGES = 20;

/** Returns all items of a list, page by page. */
export async function all<T>(
  path: string,
  filters: Readonly<Record<string, string>> = {},
): Promise<T[]> {
  const found: T[] = [];
  let cursor: string | null = null;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const query = new URLSearchParams({
      limit: "100",
      ...filters,
      ...(cursor === null ? {} : { cursor }),
    });
    const answer: Page<T> = await call<Page<T>>(`${path}?${query}`);
    found.push(...answer.items);
    cursor = answer.next_cursor;
    if (cursor === null) break;
  }
  return found;
}

async function reached(path: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(path, init);
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new ConnectionError("The server is unreachable.", { cause: error });
  }
}

function refused(answer: Response, text: string, path: string): ServerError {
  if (answer.status === 401 && !path.startsWith("/api/v1/auth/")) sessionEnded();
  return new ServerError(problemOf(text), answer.status);
}

/** Returns the problem in an error response's body. */
export function problemOf(text: string): Problem {
  try {
    return JSON.parse(text) as Problem;
  } catch {
    // A proxy may have responded with its own page; then only the status is known.
    return {};
  }
}
