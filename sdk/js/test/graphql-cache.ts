/**
 * Apollo Client and urql with their normalised caches, as a program: it shows a page, changes a
 * document on command, and follows a live query through interruptions. It reports the content of a
 * page and the number of calls: the response to a mutation has to reach the page through the cache,
 * which identifies documents by their global ids.
 */

import { createInterface } from "node:readline";
import { watchPage as apollo } from "./apollo.js";
import { followForEver, HeldRows, report } from "./graphql-rows.js";
import { watchPage as urql } from "./urql.js";

const [kind = "", url = "", token = "", collection = ""] = process.argv.slice(2);
let calls = 0;
const counted: typeof fetch = (...call) => {
  calls += 1;
  return fetch(...call);
};
const client = (kind === "apollo" ? apollo : urql)({ url, token, collection, fetch: counted });
const held = new HeldRows();

client.watch((documents) => report("page", { documents, calls }));
createInterface({ input: process.stdin })
  .on("line", (line) => {
    const { name, n } = JSON.parse(line) as { name: string; n: number };
    void client.change(name, n);
  })
  .on("close", () => process.exit(0));
await followForEver(() => client.follow(held));
