/**
 * A live query through `graphql-ws`, the client that Apollo and urql also use: a program that
 * reports its rows, and how often it had to receive the whole answer.
 */

import { createClient } from "graphql-ws";
import { type Answer, followForEver, HeldRows, watch } from "./graphql-rows.js";

const [url = "", token = "", collection = ""] = process.argv.slice(2);
const held = new HeldRows();

/** One connection's worth of the subscription; ends by throwing when the connection is lost. */
async function follow(): Promise<void> {
  const client = createClient({
    url,
    connectionParams: { token },
    retryAttempts: 0,
    lazyCloseTimeout: 0,
  });
  const query = watch("key document");
  for await (const result of client.iterate({
    query,
    variables: { collection, resume: held.resume },
  })) {
    if (result.errors) throw new Error(JSON.stringify(result.errors));
    held.keep(result as Answer);
  }
}

process.stdin.on("end", () => process.exit(0)).resume();
await followForEver(follow);
