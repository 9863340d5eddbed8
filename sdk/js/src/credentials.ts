/** The client's credentials, over HTTP and over the socket. */

import { RillbaseError } from "./errors.js";

/** A token, or a token and the time at which it expires. */
export type Token = string | { readonly token: string; readonly expiresAt?: Date };

/** How a client authenticates. Give one kind of credential. */
export interface CredentialOptions {
  /** A publishable key (`rbp_…`, for browsers) or a secret key (`rbk_…`, for servers). */
  readonly key?: string;
  /** An end user's JWT together with a publishable key, or a personal token together with `tenant`. */
  readonly token?: string;
  /** Called whenever a token is needed, and again before one expires. */
  readonly getToken?: () => Token | null | Promise<Token | null>;
  /** Called for a ticket before each connection: for pages whose server has the key. */
  readonly getTicket?: () => string | Promise<string>;
  /** With a personal token: the tenant whose data is accessed. */
  readonly tenant?: string;
}

/** A new token is fetched this long before the current one expires. */
const RENEW_BEFORE_MS = 30_000;

interface CachedToken {
  readonly token: string;
  /** Milliseconds since the epoch; undefined: no expiry is known. */
  readonly expiresAtMs: number | undefined;
}

/** Caches the current token and fetches new ones. */
export class Credentials {
  private cached: CachedToken | undefined;
  private fetching: Promise<CachedToken | undefined> | undefined;

  constructor(
    private readonly options: CredentialOptions,
    private readonly now: () => number,
  ) {
    refuseSecretsInPages(options.key);
  }

  /** Whether a rejected token can be replaced. */
  get canRenew(): boolean {
    return this.options.getToken !== undefined || this.options.getTicket !== undefined;
  }

  /** Discards the current token, which the server has rejected. */
  forget(): void {
    this.cached = undefined;
  }

  /** Returns the headers of a call. */
  async headers(): Promise<Record<string, string>> {
    const { key, tenant } = this.options;
    const token = await this.token();
    const headers: Record<string, string> = {};
    if (key !== undefined && isPublishable(key)) headers["Rillbase-Key"] = key;
    const bearer = token ?? (key !== undefined && !isPublishable(key) ? key : undefined);
    if (bearer !== undefined) headers.Authorization = `Bearer ${bearer}`;
    if (tenant !== undefined) headers["Rillbase-Tenant"] = tenant;
    return headers;
  }

  /** Returns the members of `hello` and `auth`. */
  async hello(): Promise<Record<string, string>> {
    if (this.options.getTicket !== undefined) return { token: await this.options.getTicket() };
    const { key, tenant } = this.options;
    const token = await this.token();
    if (key !== undefined && !isPublishable(key)) return { token: key };
    return {
      ...(key === undefined ? {} : { key }),
      ...(token === undefined ? {} : { token }),
      ...(tenant === undefined ? {} : { tenant }),
    };
  }

  /** Returns in how many milliseconds the current token should be replaced; undefined: never. */
  get renewInMs(): number | undefined {
    const end = this.cached?.expiresAtMs;
    if (end === undefined || this.options.getToken === undefined) return undefined;
    return Math.max(end - RENEW_BEFORE_MS - this.now(), 1_000);
  }

  private async token(): Promise<string | undefined> {
    if (this.options.getToken === undefined) return this.options.token;
    if (this.cached === undefined || this.isEnding(this.cached)) {
      this.fetching ??= this.fetch(this.options.getToken).finally(() => {
        this.fetching = undefined;
      });
      this.cached = await this.fetching;
    }
    return this.cached?.token;
  }

  private isEnding(cached: CachedToken): boolean {
    return cached.expiresAtMs !== undefined && cached.expiresAtMs - this.now() <= RENEW_BEFORE_MS;
  }

  private async fetch(
    getToken: NonNullable<CredentialOptions["getToken"]>,
  ): Promise<CachedToken | undefined> {
    const fetched = await getToken();
    if (fetched === null) return undefined;
    if (typeof fetched === "string") return { token: fetched, expiresAtMs: endOfJwt(fetched) };
    const { token, expiresAt } = fetched;
    return { token, expiresAtMs: expiresAt?.getTime() ?? endOfJwt(token) };
  }
}

function isPublishable(key: string): boolean {
  return key.startsWith("rbp_");
}

/** Everyone who opens a page could read a secret key in it. */
function refuseSecretsInPages(key: string | undefined): void {
  if (key !== undefined && !isPublishable(key) && "document" in globalThis) {
    throw new RillbaseError(
      "secret_key_in_page",
      "A secret key must not be sent to browsers. Use a publishable key (rbp_…) and access rules. " +
        "The console creates one under API keys.",
    );
  }
}

/** Returns a JWT's `exp` in milliseconds. Only the server verifies the token. */
function endOfJwt(token: string): number | undefined {
  const body = token.split(".")[1];
  if (body === undefined) return undefined;
  try {
    const claims: unknown = JSON.parse(atob(body.replaceAll("-", "+").replaceAll("_", "/")));
    const exp = (claims as { exp?: unknown } | null)?.exp;
    return typeof exp === "number" ? exp * 1000 : undefined;
  } catch {
    // Not a JWT but a ticket or a personal token, whose expiry only the server knows.
    return undefined;
  }
}
