/** Sends operations over HTTP, and subscriptions over a WebSocket. */

import { useQuery } from "@tanstack/react-query";
import { buildClientSchema, getIntrospectionQuery, type IntrospectionQuery } from "graphql";
import { createClient } from "graphql-ws";
import { useCallback, useEffect, useRef, useState } from "react";
import { call, sessionHeaders } from "../../api/control";
import { exactNumber, type Json, parseJson } from "../../ui/definition/exactJson";

export interface Operation {
  readonly query: string;
  readonly variables: Record<string, unknown>;
  readonly operationName?: string;
}

export interface SubscriptionResponse {
  readonly number: number;
  readonly at: Date;
  readonly answer: unknown;
}

/** The page keeps this many of the latest responses. */
const MAX_RESPONSES = 100;

/** Sends an operation once. A rejected operation is a response too. */
export async function ask(slug: string, operation: Operation): Promise<Json> {
  const answer = await fetch("/graphql", {
    method: "POST",
    credentials: "same-origin",
    headers: { "Content-Type": "application/json", ...sessionHeaders(slug) },
    body: JSON.stringify(operation),
  });
  return parseJson(await answer.text());
}

/** Reads the tenant's schema: the types of its collections and of the control plane. */
export function useSchema(slug: string) {
  return useQuery({
    queryKey: [slug, "graphql"],
    queryFn: async () => {
      const query = getIntrospectionQuery({ inputValueDeprecation: false });
      const answer = (await ask(slug, { query, variables: {} })) as unknown as {
        data?: IntrospectionQuery;
      };
      if (answer.data === undefined) throw new Error("The schema cannot be read.");
      return buildClientSchema(answer.data);
    },
    staleTime: 30_000,
  });
}

/** Runs a subscription until it ends or is stopped, and reconnects after interruptions. */
export function useSubscription(slug: string) {
  const [responses, setResponses] = useState<readonly SubscriptionResponse[]>([]);
  const [isRunning, setRunning] = useState(false);
  const cancel = useRef(() => {});
  const stop = useCallback(() => cancel.current(), []);
  useEffect(() => stop, [stop]);

  const start = useCallback(
    (operation: Operation) => {
      cancel.current();
      setResponses([]);
      setRunning(true);
      let number = 0;
      const add = (answer: unknown) => {
        number += 1;
        const latest = { number, at: new Date(), answer };
        setResponses((earlier) => [latest, ...earlier].slice(0, MAX_RESPONSES));
      };
      const client = createClient({
        url: `${location.origin.replace(/^http/, "ws")}/graphql`,
        // A WebSocket cannot carry the session, so each connection presents a new ticket.
        connectionParams: async () => ({ token: await ticket(slug) }),
        retryAttempts: Number.POSITIVE_INFINITY,
        jsonMessageReviver: exactNumber,
      });
      const end = () => {
        setRunning(false);
        void client.dispose();
      };
      const unsubscribe = client.subscribe(
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
      cancel.current = () => {
        cancel.current = () => {};
        unsubscribe();
        end();
      };
    },
    [slug],
  );
  return { responses, isRunning, start, stop };
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
