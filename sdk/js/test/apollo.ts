/**
 * Apollo Client as programs use it: one cache for queries and mutations, and a link for each
 * transport.
 */

import { ApolloClient, ApolloLink, gql, HttpLink, InMemoryCache } from "@apollo/client";
import { GraphQLWsLink } from "@apollo/client/link/subscriptions";
import { OperationTypeNode } from "graphql";
import { createClient } from "graphql-ws";
import { type Cached, CHANGE, PAGE, type Setting } from "./cached.js";
import { watch } from "./graphql-rows.js";

interface Page {
  readonly documents: { readonly nodes: readonly { readonly document: unknown }[] };
}

export function watchPage({ url, token, collection, fetch }: Setting): Cached {
  const http = new HttpLink({ uri: url, fetch, headers: { Authorization: `Bearer ${token}` } });
  const socket = new GraphQLWsLink(
    createClient({
      url: url.replace(/^http/, "ws"),
      connectionParams: { token },
      retryAttempts: 0,
    }),
  );
  const client = new ApolloClient({
    cache: new InMemoryCache(),
    link: ApolloLink.split(
      ({ operationType }) => operationType === OperationTypeNode.SUBSCRIPTION,
      socket,
      http,
    ),
  });
  return {
    watch: (listener) => {
      client
        .watchQuery<Page>({ query: gql(PAGE), variables: { collection } })
        .subscribe(({ data, dataState }) => {
          if (dataState === "complete") listener(data.documents.nodes.map((node) => node.document));
        });
    },
    change: async (key, n) => {
      const variables = { collection, key, update: { $set: { n } } };
      await client.mutate({ mutation: gql(CHANGE), variables });
    },
    follow: (held) =>
      new Promise((resolve, reject) => {
        const variables = { collection, resume: held.resume };
        const query = gql(watch("id key version document"));
        client.subscribe({ query, variables, fetchPolicy: "no-cache" }).subscribe({
          next: (answer) => {
            if (answer.error) reject(answer.error);
            else held.keep(answer);
          },
          error: reject,
          complete: resolve,
        });
      }),
  };
}
