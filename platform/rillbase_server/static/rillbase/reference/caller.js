/** Who calls: the tenant and the key of the snippets. The key stays in this page's memory. */

const MAX_SHOWN = 20_000;
const LANGUAGE = "rillbase:reference-language";

export class Caller {
  tenant = "acme";
  tenants = [];
  key = "";
  language = localStorage.getItem(LANGUAGE) ?? "curl";
  #isSignedIn = false;
  #listeners = [];

  get isSignedIn() {
    return this.#isSignedIn;
  }

  /** Finds out who is signed in, and in which tenants; without a session nothing changes. */
  async load() {
    const session = await fetch("/api/v1/auth/session");
    if (!session.ok) return;
    const tenants = await fetch("/api/v1/tenants?limit=200");
    if (!tenants.ok) return;
    this.#isSignedIn = true;
    this.tenants = (await tenants.json()).items;
    const last = localStorage.getItem("rillbase:tenant");
    const chosen = this.tenants.find(({ slug }) => slug === last) ?? this.tenants[0];
    if (chosen !== undefined) this.set({ tenant: chosen.slug });
  }

  set(change) {
    Object.assign(this, change);
    for (const listener of this.#listeners) listener();
  }

  choose(language) {
    localStorage.setItem(LANGUAGE, language);
    this.set({ language });
  }

  onChange(listener) {
    this.#listeners.push(listener);
  }

  /** Returns the parts of a request that do not depend on the operation. */
  with(values) {
    const filled = { tenant: this.tenant, ...nonEmpty(values) };
    return { origin: location.origin, key: this.key, values: filled };
  }

  /** Sends a read, and returns its status and body as text. */
  async send({ url, headers }) {
    const sent = { ...headers };
    for (const name of ["Cookie", "X-CSRF-Token"]) delete sent[name];
    if (this.key === "") {
      delete sent.Authorization;
      if (this.#isSignedIn) sent["Rillbase-Tenant"] = this.tenant;
    }
    try {
      const response = await fetch(url, { headers: sent });
      const text = await response.text();
      return `${response.status} ${response.statusText}\n\n${formatted(text).slice(0, MAX_SHOWN)}`;
    } catch {
      return "The server is unreachable, or the values cannot be sent.";
    }
  }
}

function nonEmpty(values) {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== ""));
}

function formatted(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
