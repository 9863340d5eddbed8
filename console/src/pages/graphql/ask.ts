/** Operations on their way: over HTTP, and subscriptions over a WebSocket. */

import { useQuery } from "@tanstack/react-query";
import { buildClientSchema, getIntrospectionQuery, type IntrospectionQuery } from "graphql";
import { createClient } from "graphql-ws";
import { useCallback, useEffect, useRef, useState } from "react";
import { call, sessionHeaders } from "../../api/control";

export interface Operation {
  readonly query: string;
  readonly variables: Record<string, unknown>;
  readonly operationName?: string;
}

export interface Told {
  readonly number: number;
  readonly at: Date;
  readonly answer: unknown;
}

/** So many answers of a subscription stay in the page, the last ones. */
const MAX_TOLD = 100;

/** Asks once. What the server refuses is an answer as well. */
export async function ask(slug: string, operation: Operation): Promise<unknown> {
  const answer = await fetch("/graphql", {
    method: "POST",
    credentials: "same-origin",
    headers: { "Content-Type": "application/json", ...sessionHeaders(slug) },
    body: JSON.stringify(operation),
  });
  return answer.json();
}

/** Returns the tenant's schema: its collections' types, and the control plane's. */
export function useSchema(slug: string) {
  return useQuery({
    queryKey: [slug, "graphql"],
    queryFn: async () => {
      const query = getIntrospectionQuery({ inputValueDeprecation: false });
      const answer = (await ask(slug, { query, variables: {} })) as { data?: IntrospectionQuery };
      if (answer.data === undefined) throw new Error("The schema cannot be read.");
      return buildClientSchema(answer.data);
    },
    staleTime: 30_000,
  });
}

/** Follows a subscription until it ends or is stopped. It goes on by itself after interruptions. */
export function useSubscription(slug: string) {
  const [told, setTold] = useState<readonly Told[]>([]);
  const [isRunning, setRunning] = useState(false);
  const stopping = useRef(() => {});
  const stop = useCallback(() => stopping.current(), []);
  useEffect(() => stop, [stop]);

  const start = useCallback(
    (operation: Operation) => {
      stopping.current();
      setTold([]);
      setRunning(true);
      let number = 0;
      const add = (answer: unknown) => {
        number += 1;
        const latest = { number, at: new Date(), answer };
        setTold((before) => [latest, ...before].slice(0, MAX_TOLD));
      };
      const client = createClient({
        url: `${location.origin.replace(/^http/, "ws")}/graphql`,
        // A WebSocket cannot carry the session; a ticket stands for it, each time a new one.
        connectionParams: async () => ({ token: await ticket(slug) }),
        retryAttempts: Number.POSITIVE_INFINITY,
      });
      const end = () => {
        setRunning(false);
        void client.dispose();
      };
      const leave = client.subscribe(
        { ...operation },
        {
          next: add,
          error: (thrown) => {
            add({ errors: Array.isArray(thrown) ? thrown : [{ message: reasonOf(thrown) }] });
            end();
          },
          complete: end,
        },
      );
      stopping.current = () => {
        stopping.current = () => {};
        leave();
        end();
      };
    },
    [slug],
  );
  return { told, isRunning, start, stop };
}

async function ticket(slug: string): Promise<string> {
  const answer = await call<{ ticket: string }>("/v1/realtime/tickets", {
    method: "POST",
    body: {},
    headers: sessionHeaders(slug),
  });
  return answer.ticket;
}

function reasonOf(thrown: unknown): string {
  if (thrown instanceof Error) return thrown.message;
  if (thrown instanceof CloseEvent)
    return thrown.reason || `The connection closed (${thrown.code}).`;
  return String(thrown);
}
