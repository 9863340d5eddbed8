/** The client's credentials, over HTTP and over the socket. */

import { RillbaseError } from "./errors.js";

/** A token, or a token and the moment at which it ends. */
export type Token = string | { readonly token: string; readonly expiresAt?: Date };

export interface CredentialOptions {
  /** A publishable key (`rbp_…`, for browsers) or a secret key (`rbk_…`, for servers). */
  readonly key?: string;
  /** A JWT of an end user beside a publishable key, or a personal token beside `tenant`. */
  readonly token?: string;
  /** Asked whenever a token is needed, and again before one ends. */
  readonly getToken?: () => Token | null | Promise<Token | null>;
  /** Asked for a ticket before each connection: for pages whose server holds the key. */
  readonly getTicket?: () => string | Promise<string>;
  /** With a personal token: the tenant whose data is meant. */
  readonly tenant?: string;
}

/** A new token is fetched so long before the old one ends. */
const RENEW_BEFORE_MS = 30_000;

interface Held {
  readonly token: string;
  /** Milliseconds since the epoch; undefined: it does not end, as far as is known. */
  readonly expiresAtMs: number | undefined;
}

/** Holds the present token and fetches new ones. */
export class Credentials {
  private held: Held | undefined;
  private fetching: Promise<Held | undefined> | undefined;

  constructor(
    private readonly options: CredentialOptions,
    private readonly now: () => number,
  ) {
    refuseSecretsInPages(options.key);
  }

  /** Whether a refused token can be replaced by another one. */
  get canRenew(): boolean {
    return this.options.getToken !== undefined || this.options.getTicket !== undefined;
  }

  /** Forgets the present token: the server did not take it. */
  forget(): void {
    this.held = undefined;
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

  /** Returns in how many milliseconds the present token should be replaced; undefined: never. */
  get renewInMs(): number | undefined {
    const end = this.held?.expiresAtMs;
    if (end === undefined || this.options.getToken === undefined) return undefined;
    return Math.max(end - RENEW_BEFORE_MS - this.now(), 1_000);
  }

  private async token(): Promise<string | undefined> {
    if (this.options.getToken === undefined) return this.options.token;
    if (this.held === undefined || this.isEnding(this.held)) {
      this.fetching ??= this.fetch(this.options.getToken).finally(() => {
        this.fetching = undefined;
      });
      this.held = await this.fetching;
    }
    return this.held?.token;
  }

  private isEnding(held: Held): boolean {
    return held.expiresAtMs !== undefined && held.expiresAtMs - this.now() <= RENEW_BEFORE_MS;
  }

  private async fetch(
    getToken: NonNullable<CredentialOptions["getToken"]>,
  ): Promise<Held | undefined> {
    const found = await getToken();
    if (found === null) return undefined;
    if (typeof found === "string") return { token: found, expiresAtMs: endOfJwt(found) };
    return { token: found.token, expiresAtMs: found.expiresAt?.getTime() ?? endOfJwt(found.token) };
  }
}

function isPublishable(key: string): boolean {
  return key.startsWith("rbp_");
}

/** A secret key in a page is everybody's key. */
function refuseSecretsInPages(key: string | undefined): void {
  if (key !== undefined && !isPublishable(key) && "document" in globalThis) {
    throw new RillbaseError(
      "secret_key_in_page",
      "A secret key must not be sent to browsers. Use a publishable key (rbp_…) and access rules.",
    );
  }
}

/** Returns a JWT's `exp` in milliseconds. The server checks the token; here it is only read. */
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
