/** Queries over datasets: from the members that are typed or saved to the SDK's. */

import { parse, type TableQuery } from "rillbase";
import { failureOf } from "../api/failure";
import { freshnessOf } from "../pages/datasets/types";

type Members = Readonly<Record<string, unknown>>;

/** Returns the members in a text, or throws a `SyntaxError` that says what is wrong. */
export function readMembers(text: string): Members {
  let members: unknown;
  try {
    members = parse(text.trim() === "" ? "{}" : text);
  } catch (error) {
    throw new SyntaxError(`The query cannot be read: ${failureOf(error).title}`);
  }
  if (typeof members !== "object" || members === null || Array.isArray(members))
    throw new SyntaxError("A query must be an object.");
  return members as Members;
}

/** Returns the query of members that include the table and the freshness, as text. */
export function tableQueryOf({ table, freshness = "0", ...members }: Members): TableQuery {
  return {
    ...(withSdkNames(members) as Omit<TableQuery, "table">),
    table: String(table),
    freshness: freshnessOf(String(freshness)),
  };
}

const SDK_NAMES: Readonly<Record<string, string>> = { group_by: "groupBy", as_of: "asOf" };

/** The editor takes the API's names and the SDK's; the server refuses names that it does not know. */
function withSdkNames(members: Members): Record<string, unknown> {
  const query: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(members)) {
    const member = SDK_NAMES[name] ?? name;
    if (member in query)
      throw new SyntaxError(`The query has ${name} and ${member}: specify only one.`);
    query[member] = value;
  }
  return query;
}

/** Returns a query with the API's names. */
export function withApiNames(query: object): Record<string, unknown> {
  const apiNames = new Map(Object.entries(SDK_NAMES).map(([api, sdk]) => [sdk, api]));
  const members = Object.entries(query);
  return Object.fromEntries(members.map(([name, value]) => [apiNames.get(name) ?? name, value]));
}
