/** Creates what the guided start needs in the tenant. A repeated run uses what exists. */

import { type Client, ServerError } from "rillbase";
import { all, call } from "../../api/control";
import type { ApiKey, Collection, Tenant } from "../../api/types";

export const IDEAS = "ideas";
const KEY_NAME = "Browser example";
/** Where the example's page is served on the developer's machine. `examples.browser` has 8090. */
export const APP_PORT = 8100;
const APP_ORIGINS = [`http://127.0.0.1:${APP_PORT}`, `http://localhost:${APP_PORT}`];

const SAMPLES = [
  { title: "Four-day week", votes: 8 },
  { title: "A plant for every desk", votes: 5 },
  { title: "Dark mode for the kitchen", votes: 3 },
  { title: "Elevator that knows where I want to go", votes: 2 },
] as const;

/** Everyone may make any change that the schema allows: this is a playground. */
const DECLARATION = {
  name: IDEAS,
  schema: {
    type: "object",
    required: ["title", "votes"],
    properties: {
      title: { type: "string", minLength: 1, maxLength: 80 },
      votes: { type: "number" },
    },
  },
  access_rules: { read: true, create: true, update: true, delete: true },
  indexes: [{ name: "by-votes", fields: [["votes", -1]] }],
};

/** Returns the publishable key of the example, or null while there is none. */
export async function findKey(api: string): Promise<string | null> {
  const [keys, collections] = await Promise.all([
    all<ApiKey>(`${api}/api-keys`),
    all<Collection>(`${api}/collections`),
  ]);
  if (!collections.some(({ name }) => name === IDEAS)) return null;
  return (
    keys.find(({ name, state, key }) => name === KEY_NAME && state === "active" && key !== null)
      ?.key ?? null
  );
}

/** Makes the collection with its rows, a key for apps, and lets their pages call. */
export async function setUp(
  api: string,
  client: Client,
  mayChangeTenant: boolean,
): Promise<string> {
  await makeCollection(api, client);
  if (mayChangeTenant) await letIn(api);
  return (await findKey(api)) ?? (await makeKey(api));
}

async function makeCollection(api: string, client: Client): Promise<void> {
  try {
    await call(`${api}/collections`, { method: "POST", body: DECLARATION });
  } catch (error) {
    // It already exists, with other rows.
    if (error instanceof ServerError && error.status === 409) return;
    throw error;
  }
  await client.collection(IDEAS).bulk((steps) => {
    for (const sample of SAMPLES) steps.insert({ ...sample });
  });
}

async function letIn(api: string): Promise<void> {
  const { cors_origins: origins } = await call<Tenant>(api);
  const missing = APP_ORIGINS.filter((origin) => !origins.includes(origin));
  if (missing.length > 0)
    await call(api, { method: "PATCH", body: { cors_origins: [...origins, ...missing] } });
}

async function makeKey(api: string): Promise<string> {
  const scopes = ["documents:read", "documents:write"];
  const body = { kind: "publishable", name: KEY_NAME, scopes, collections: [IDEAS] };
  return (await call<ApiKey>(`${api}/api-keys`, { method: "POST", body })).key ?? "";
}
