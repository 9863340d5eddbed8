/** urql as programs use it, with its normalised cache and `graphql-ws` for subscriptions. */

import { Client, type ExecutionResult, fetchExchange, subscriptionExchange } from "@urql/core";
import { cacheExchange } from "@urql/exchange-graphcache";
import { createClient } from "graphql-ws";
import { type Cached, CHANGE, PAGE, type Setting } from "./cached.js";
import { watch } from "./graphql-rows.js";

interface Page {
  readonly documents: { readonly nodes: readonly { readonly document: unknown }[] };
}

/** Types that are part of what they stand in, and have no id of their own. */
const embedded = () => null;

export function watchPage({ url, token, collection, fetch }: Setting): Cached {
  const socket = createClient({
    url: url.replace(/^http/, "ws"),
    connectionParams: { token },
    retryAttempts: 0,
  });
  const client = new Client({
    url,
    fetch,
    preferGetMethod: false,
    fetchOptions: { headers: { Authorization: `Bearer ${token}` } },
    exchanges: [
      cacheExchange({
        keys: {
          AnyDocumentConnection: embedded,
          LiveDocuments: embedded,
        },
      }),
      fetchExchange,
      subscriptionExchange({
        forwardSubscription: ({ query = "", variables }) => ({
          subscribe: (sink) => ({
            unsubscribe: socket.subscribe(
              { query, variables: variables ?? {} },
              { ...sink, next: (answer) => sink.next(answer as ExecutionResult) },
            ),
          }),
        }),
      }),
    ],
  });
  return {
    watch: (listener) => {
      client.query<Page>(PAGE, { collection }).subscribe(({ data, error }) => {
        if (error) throw error;
        if (data) listener(data.documents.nodes.map((node) => node.document));
      });
    },
    change: async (key, n) => {
      const variables = { collection, key, update: { $set: { n } } };
      await client.mutation(CHANGE, variables).toPromise();
    },
    follow: (held) =>
      new Promise((_, reject) => {
        const variables = { collection, resume: held.resume };
        const query = watch("id key version document");
        const { unsubscribe } = client.subscription(query, variables).subscribe((answer) => {
          if (answer.error) {
            reject(answer.error);
            // The client would otherwise take the next one for the same subscription.
            queueMicrotask(() => unsubscribe());
          } else {
            held.keep(answer);
          }
        });
      }),
  };
}
