/**
 * Creates what a page needs: a collection, a publishable key and an allowed origin, and writes the
 * page's settings to `.env.local`. It is safe to repeat.
 *
 * RILLBASE_KEY is the secret key that `make run` prints. It stays on this machine: pages receive
 * the publishable key only.
 */

import { writeFile } from "node:fs/promises";

const { RILLBASE_URL: url = "http://127.0.0.1:8080", RILLBASE_KEY: key } = process.env;
const ORIGINS = process.env.ORIGIN?.split(",") ?? ["http://localhost:5173", "http://127.0.0.1:5173"];
const NAME = "Quick starts";
const CONFLICT = 409;

const TASKS = {
  name: "tasks",
  schema: {
    type: "object",
    required: ["title", "done", "created"],
    properties: {
      title: { type: "string", minLength: 1, maxLength: 200 },
      done: { type: "boolean" },
    },
  },
  // Everyone may do what the schema allows. Real applications restrict this.
  access_rules: { read: true, create: true, update: true, delete: false },
};

async function call(method, path, body, { allowed = [] } = {}) {
  const response = await fetch(url + path, {
    method,
    headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
    body: body && JSON.stringify(body),
  });
  const content = await response.json();
  if (response.ok || allowed.includes(response.status)) return content;
  throw new Error(`${content.title} (${content.code}): ${method} ${path}`);
}

async function publishableKey(tenant) {
  const { items } = await call("GET", `${tenant}/api-keys?limit=100`);
  const known = items.find(({ name, state, key }) => name === NAME && state === "active" && key);
  if (known) return known.key;
  const scopes = ["documents:read", "documents:write"];
  const wanted = { kind: "publishable", name: NAME, scopes, collections: [TASKS.name] };
  return (await call("POST", `${tenant}/api-keys`, wanted)).key;
}

async function prepare() {
  if (!key) throw new Error("Set RILLBASE_KEY to the key that `make run` prints.");
  const tenant = `/api/v1/tenants/${(await call("GET", "/v1/whoami")).tenant}`;
  await call("POST", `${tenant}/collections`, TASKS, { allowed: [CONFLICT] });
  const { cors_origins: origins } = await call("GET", tenant);
  await call("PATCH", tenant, { cors_origins: [...new Set([...origins, ...ORIGINS])] });
  const settings = { VITE_RILLBASE_URL: url, VITE_RILLBASE_KEY: await publishableKey(tenant) };
  const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`);
  await writeFile(".env.local", lines.join(""));
  console.log("Wrote .env.local. Start the page with `npm run dev`.");
}

try {
  await prepare();
} catch (error) {
  const reason = error.cause?.code === "ECONNREFUSED" ? `Rillbase is not running at ${url}.` : error.message;
  console.error(reason);
  process.exitCode = 1;
}
