/** Errors, by what the caller does about them. */

/** A field of the request, and what is wrong with it. */
export interface ErrorPlace {
  /** A JSON pointer into the body. */
  readonly pointer: string;
  readonly code: string;
  readonly detail: string;
}

/** A problem document as the server sends it (RFC 9457). */
export interface Problem {
  readonly status?: number;
  readonly code?: string;
  readonly title?: string;
  readonly detail?: string;
  readonly errors?: readonly ErrorPlace[];
  readonly request_id?: string;
}

/**
 * The base of all errors. Programs should check `code`, which is stable; messages are for people.
 */
export class RillbaseError extends Error {
  /** The name of the error's class. */
  override readonly name: string = "RillbaseError";

  constructor(
    /** A stable code that identifies the error. */
    readonly code: string,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }

  /** Whether the same call may succeed later. */
  get isTemporary(): boolean {
    return false;
  }
}

/** The server rejected the call. `code` is one of those in the documentation's list of errors. */
export class ServerError extends RillbaseError {
  override readonly name = "ServerError";
  /** The status of the HTTP response. */
  readonly status: number;
  /** Each invalid field of the body. */
  readonly places: readonly ErrorPlace[];
  /** The id of the request, which the request log shows too. */
  readonly requestId: string | undefined;

  constructor(
    problem: Problem,
    status: number,
    /** After how many milliseconds the server accepts the call again, if it said so. */
    readonly retryAfterMs?: number,
  ) {
    const code = problem.code ?? `http_${status}`;
    super(code, problem.detail ?? problem.title ?? `The server responded with status ${status}.`);
    this.status = problem.status ?? status;
    this.places = problem.errors ?? [];
    this.requestId = problem.request_id;
  }

  /** Whether the server was overloaded, restarting, or still busy with the same call. */
  override get isTemporary(): boolean {
    return this.status === 429 || this.status >= 502 || this.code === "idempotency_in_progress";
  }
}

/** The server is unreachable, or the connection was lost before the response. */
export class ConnectionError extends RillbaseError {
  override readonly name = "ConnectionError";

  constructor(message: string, options?: ErrorOptions) {
    super("connection_lost", message, options);
  }

  /** Always true. */
  override get isTemporary(): boolean {
    return true;
  }
}

/** The server did not respond within the timeout of the call. */
export class TimeoutError extends RillbaseError {
  override readonly name = "TimeoutError";

  constructor(timeoutMs: number) {
    super("timeout", `The server did not respond within ${timeoutMs} ms.`);
  }
}

/** Returns whether a signal ended the call, not a failure. */
export function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === "AbortError";
}

/** Returns anything that was thrown as an error of this library. */
export function asRillbaseError(thrown: unknown): RillbaseError {
  if (thrown instanceof RillbaseError) return thrown;
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return new RillbaseError("client_error", message, { cause: thrown });
}
