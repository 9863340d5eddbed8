/** Tries access rules with the first documents of a collection and the claims of a user. */

import { call, sessionHeaders } from "../../../api/control";
import { failureOf } from "../../../api/failure";
import { dataCall } from "../../../api/tenant";
import { isObject, type Json, type JsonObject, parseJson } from "../../../ui/definition/exactJson";
import { bindRule } from "./bindRule";
import { ACTIONS, type Action } from "./rulesModel";

const SAMPLE = 8;

interface SampleDocument {
  readonly id: Json;
  readonly document: JsonObject;
}

export interface Trial {
  readonly documents: readonly {
    readonly id: Json;
    readonly document: JsonObject;
    readonly allowed: readonly Action[];
  }[];
  readonly visible: number;
  readonly all: number;
}

interface Setting {
  readonly slug: string;
  readonly collection: string;
  /** The rules as they are in the editor. */
  readonly rules: JsonObject;
  /** Whether the server can be asked to act as the user, because it has these rules. */
  readonly canActAs: boolean;
}

export async function tryRules(setting: Setting, claimsText: string): Promise<Trial> {
  const { slug, collection, rules } = setting;
  const claims = readClaims(claimsText);
  const ask = <T>(path: string, body: JsonObject) =>
    dataCall<T>(slug, `/v1/collections/${collection}/${path}`, body);
  const sample = await ask<{ readonly items: readonly SampleDocument[] }>("query", {
    limit: SAMPLE,
  });
  const ids = sample.items.map(({ id }) => id);
  const allowedIds = async (action: Action): Promise<readonly string[]> => {
    const bound = bindRule(rules[action], claims);
    if (typeof bound === "boolean") return bound ? ids.map((id) => JSON.stringify(id)) : [];
    const filter = { $and: [{ _id: { $in: ids } }, bound] };
    const { items } = await ask<{ readonly items: readonly SampleDocument[] }>("query", { filter });
    return items.map(({ id }) => JSON.stringify(id));
  };
  const [visible, { count: all }, ...allowed] = await Promise.all([
    countVisible(setting, claims),
    ask<{ readonly count: number }>("count", {}),
    ...ACTIONS.map(([action]) => allowedIds(action)),
  ]);
  const documents = sample.items.map(({ id, document }) => ({
    id,
    document,
    allowed: ACTIONS.map(([action]) => action).filter((_, place) =>
      allowed[place]?.includes(JSON.stringify(id)),
    ),
  }));
  return { documents, visible, all };
}

/** Saved rules are applied by the server itself; others are tried as a filter. */
async function countVisible(setting: Setting, claims: JsonObject): Promise<number> {
  const { slug, collection, rules, canActAs } = setting;
  const bound = bindRule(rules.read, claims);
  if (bound === false) return 0;
  const headers = {
    ...sessionHeaders(slug),
    ...(canActAs ? { "Rillbase-Act-As": headerOf(claims) } : {}),
  };
  const body = canActAs || bound === true ? {} : { filter: bound };
  const path = `/v1/collections/${collection}/count`;
  return (await call<{ readonly count: number }>(path, { method: "POST", body, headers })).count;
}

function readClaims(text: string): JsonObject {
  try {
    const claims = parseJson(text || "{}");
    if (isObject(claims)) return claims;
  } catch (error) {
    throw new SyntaxError(`The claims are not JSON: ${failureOf(error).title}`);
  }
  throw new SyntaxError("The claims are not a JSON object.");
}

/** A header is ASCII: other characters are written as JSON escapes. */
function headerOf(claims: JsonObject): string {
  return JSON.stringify(claims).replace(
    /[^\x20-\x7e]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
