/**
 * Creates what an example needs in the tenant: a collection, keys, an allowed origin and, for end
 * users, an issuer. Writes the example's settings to a file. It is safe to repeat.
 *
 * RILLBASE_KEY is the secret key that `make run` prints. It is not written to the file.
 *
 *     --collection FILE  the collection; default: tasks.json beside this file
 *     --settings FILE    .env.local (default), or a JavaScript module (.js)
 *     --prefix PREFIX    of the settings that a bundler passes to pages; default: VITE_
 *     --server-key       also write a secret key, limited to the collection, for the server
 *     --issuer URL       also register an issuer, whose tokens the server signs for its pages
 *     --assets FOLDER    also copy the shared files of the pages there, for a page without a bundler
 */

import { randomBytes } from "node:crypto";
import { cp, readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const TASKS = fileURLToPath(new URL("tasks.json", import.meta.url));
const ASSETS = fileURLToPath(new URL("public", import.meta.url));
const { values: options } = parseArgs({
  options: {
    collection: { type: "string", default: TASKS },
    settings: { type: "string", default: ".env.local" },
    prefix: { type: "string", default: "VITE_" },
    "server-key": { type: "boolean", default: false },
    issuer: { type: "string" },
    assets: { type: "string" },
  },
});
const { RILLBASE_URL: url = "http://127.0.0.1:8080", RILLBASE_KEY: key } = process.env;
const ORIGINS = process.env.ORIGIN?.split(",") ?? ["http://localhost:5173", "http://127.0.0.1:5173"];
const SCOPES = ["documents:read", "documents:write"];
const CONFLICT = 409;

async function call(method, path, body, { allowed = [] } = {}) {
  const response = await fetch(url + path, {
    method,
    headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
    body: body && JSON.stringify(body),
  });
  const content = response.status === 204 ? null : await response.json();
  if (response.ok || allowed.includes(response.status)) return content;
  throw new Error(`${content.title} (${content.code}): ${method} ${path}`);
}

async function publishableKey(tenant, collection) {
  const name = `Examples: ${collection}`;
  const { items } = await call("GET", `${tenant}/api-keys?limit=100`);
  const known = items.find((item) => item.name === name && item.state === "active" && item.key);
  if (known) return known.key;
  const declaration = { kind: "publishable", name, scopes: SCOPES, collections: [collection] };
  return (await call("POST", `${tenant}/api-keys`, declaration)).key;
}

/** Returns the secret key in the settings, or a new one: its secret is shown only once. */
async function serverKey(tenant, collection, settings) {
  const present = settings.match(/^RILLBASE_KEY=(\S+)$/m)?.[1];
  const headers = { Authorization: `Bearer ${present}` };
  if (present && (await fetch(`${url}/v1/whoami`, { headers })).ok) return present;
  const name = `Examples: server of ${collection}`;
  const declaration = { kind: "secret", name, scopes: SCOPES, collections: [collection] };
  return (await call("POST", `${tenant}/api-keys`, declaration)).secret;
}

/** Registers the issuer with the secret in the settings, or with a new one. */
async function issuerSecret(tenant, settings) {
  const present = settings.match(/^RILLBASE_TOKEN_SECRET=(\S+)$/m)?.[1];
  const { items } = await call("GET", `${tenant}/issuers?limit=100`);
  const known = items.find(({ issuer }) => issuer === options.issuer);
  if (known && present) return present;
  if (known) await call("DELETE", `${tenant}/issuers/${known.id}`);
  const secret = randomBytes(32).toString("base64url");
  const identity = { name: "examples", issuer: options.issuer, audience: "rillbase" };
  await call("POST", `${tenant}/issuers`, { ...identity, algorithms: ["HS256"], secret });
  return secret;
}

async function prepare() {
  if (!key) throw new Error("Set RILLBASE_KEY to the key that `make run` prints.");
  const tenant = `/api/v1/tenants/${(await call("GET", "/v1/whoami")).tenant}`;
  const collection = JSON.parse(await readFile(options.collection, "utf8"));
  await call("POST", `${tenant}/collections`, collection, { allowed: [CONFLICT] });
  const { cors_origins: origins } = await call("GET", tenant);
  await call("PATCH", tenant, { cors_origins: [...new Set([...origins, ...ORIGINS])] });
  const present = await readFile(options.settings, "utf8").catch(() => "");
  const publishable = await publishableKey(tenant, collection.name);
  const settings = {};
  if (options.prefix) {
    settings[`${options.prefix}RILLBASE_URL`] = url;
    settings[`${options.prefix}RILLBASE_KEY`] = publishable;
  }
  if (options["server-key"]) {
    settings.RILLBASE_URL = url;
    settings.RILLBASE_KEY = await serverKey(tenant, collection.name, present);
  }
  if (options.issuer) {
    settings.RILLBASE_PUBLISHABLE_KEY = publishable;
    settings.RILLBASE_TOKEN_SECRET = await issuerSecret(tenant, present);
  }
  if (options.assets) await cp(ASSETS, options.assets, { recursive: true });
  await writeFile(options.settings, rendered(settings), { mode: 0o600 });
  console.log(`Allowed pages of ${ORIGINS.join(" and ")}. Wrote ${options.settings}.`);
}

function rendered(settings) {
  if (!options.settings.endsWith(".js")) {
    return Object.entries(settings).map(([name, value]) => `${name}=${value}\n`).join("");
  }
  const [address, publishable] = Object.values(settings);
  return `export const url = ${JSON.stringify(address)};\nexport const key = ${JSON.stringify(publishable)};\n`;
}

try {
  await prepare();
} catch (error) {
  const reason = error.cause?.code === "ECONNREFUSED" ? `Rillbase is not running at ${url}.` : error.message;
  console.error(reason);
  process.exitCode = 1;
}
