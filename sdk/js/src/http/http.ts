/**
 * Calls over HTTP: credentials, timeouts and retries.
 *
 * Reads may always be retried. Writes carry an idempotency key, with which a retried call takes
 * effect once, so they may be retried too.
 */

import { backoffMs, RETRY } from "../backoff.js";
import type { Clock } from "../clock.js";
import type { Credentials } from "../credentials.js";
import { decode, decodeTyped } from "../ejson/decode.js";
import { ConnectionError, type Problem, ServerError, TimeoutError } from "../errors.js";

/** The options of a single call. */
export interface CallOptions {
  /** Ends the call, and everything that it waits for. */
  readonly signal?: AbortSignal;
  /** For the whole call, retries included. */
  readonly timeoutMs?: number;
}

/** The names of `CallOptions`. */
export const CALL_OPTIONS: readonly (keyof CallOptions)[] = ["signal", "timeoutMs"];

export interface Request {
  readonly method: string;
  readonly path: string;
  /** Extended JSON. */
  readonly body?: string;
  readonly contentType?: string;
  readonly idempotencyKey?: string;
  readonly ifMatch?: string;
}

export interface HttpOptions {
  readonly url: string;
  readonly credentials: Credentials;
  readonly clock: Clock;
  readonly fetch: typeof fetch;
  readonly timeoutMs: number;
  /** Whether responses are canonical Extended JSON, and numbers keep their types. */
  readonly typedNumbers: boolean;
}

const MAX_ATTEMPTS = 4;

export class Http {
  constructor(private readonly options: HttpOptions) {}

  /** Returns the response's body; undefined if it has none. */
  async call(request: Request, options: CallOptions = {}): Promise<unknown> {
    const timeoutMs = options.timeoutMs ?? this.options.timeoutMs;
    const limit = new AbortController();
    const { clock } = this.options;
    const timer = clock.after(timeoutMs, () => limit.abort(new TimeoutError(timeoutMs)));
    const signals = [limit.signal, ...(options.signal === undefined ? [] : [options.signal])];
    try {
      return await this.repeated(request, AbortSignal.any(signals));
    } finally {
      clock.cancel(timer);
    }
  }

  private async repeated(request: Request, signal: AbortSignal): Promise<unknown> {
    let renewed = false;
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.attempt(request, signal);
      } catch (error) {
        if (signal.aborted) throw signal.reason;
        if (isRefusedToken(error) && this.options.credentials.canRenew && !renewed) {
          renewed = true;
          this.options.credentials.forget();
        } else if (isWorthRepeating(error) && attempt < MAX_ATTEMPTS) {
          await this.pause(waitOf(error, attempt, this.options.clock.random()), signal);
        } else {
          throw error;
        }
      }
    }
  }

  private async attempt(request: Request, signal: AbortSignal): Promise<unknown> {
    const headers = await this.options.credentials.headers();
    signal.throwIfAborted();
    if (request.body !== undefined) {
      headers["Content-Type"] = request.contentType ?? "application/json";
    }
    if (request.idempotencyKey !== undefined) headers["Idempotency-Key"] = request.idempotencyKey;
    if (request.ifMatch !== undefined) headers["If-Match"] = request.ifMatch;
    if (this.options.typedNumbers) headers["Rillbase-EJSON"] = "canonical";
    const { method, body = null } = request;
    const init: RequestInit = { method, headers, body, signal, credentials: "omit" };
    let answer: Response;
    let text: string;
    try {
      answer = await this.options.fetch(this.options.url + request.path, init);
      text = await answer.text();
    } catch (error) {
      if (signal.aborted) throw error;
      throw new ConnectionError(unreachable(this.options.url), { cause: error });
    }
    if (!answer.ok) throw refusal(answer, text);
    if (text === "") return undefined;
    return (this.options.typedNumbers ? decodeTyped : decode)(JSON.parse(text));
  }

  private pause(ms: number, signal: AbortSignal): Promise<void> {
    const { clock } = this.options;
    return new Promise((resolve, reject) => {
      const end = () => {
        clock.cancel(timer);
        reject(signal.reason);
      };
      const timer = clock.after(ms, () => {
        signal.removeEventListener("abort", end);
        resolve();
      });
      signal.addEventListener("abort", end, { once: true });
    });
  }
}

/** A browser hides from a page why a call to another origin failed. */
function unreachable(url: string): string {
  const page = globalThis.location?.origin;
  if (page === undefined || new URL(url, page).origin === page) {
    return "The server is unreachable.";
  }
  return `The server is unreachable, or the tenant does not allow the origin ${page}.`;
}

function isWorthRepeating(error: unknown): boolean {
  return (error instanceof ServerError || error instanceof ConnectionError) && error.isTemporary;
}

function isRefusedToken(error: unknown): boolean {
  return error instanceof ServerError && error.status === 401;
}

function waitOf(error: unknown, attempt: number, random: number): number {
  const retryAfterMs = error instanceof ServerError ? error.retryAfterMs : undefined;
  return Math.max(retryAfterMs ?? 0, backoffMs(attempt, random, RETRY));
}

function refusal(answer: Response, text: string): ServerError {
  const after = Number(answer.headers.get("Retry-After") ?? Number.NaN);
  return new ServerError(
    problemOf(text),
    answer.status,
    ...(Number.isNaN(after) ? [] : [after * 1000]),
  );
}

function problemOf(text: string): Problem {
  try {
    const problem: unknown = JSON.parse(text);
    return typeof problem === "object" && problem !== null ? problem : {};
  } catch {
    // A proxy may have responded with its own page; then only the status is known.
    return {};
  }
}
