/** The current tenant: its calls, the client of its data, and the user's permissions. */

import { useQuery } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect, useMemo, useState } from "react";
import { type Client, createClient } from "rillbase";
import { all, call, sessionHeaders } from "./control";
import { useUser } from "./session";
import type { Collection, Member, Role, Tenant } from "./types";

const RANK: Record<Role, number> = { viewer: 0, developer: 1, admin: 2, owner: 3 };

export interface InTenant {
  readonly slug: string;
  /** The tenant's part of the control plane: `${api}/members`. */
  readonly api: string;
  readonly client: Client;
  readonly role: Role;
  /** Whether the user's role is this one or a higher one. */
  readonly may: (least: Role) => boolean;
}

const Context = createContext<InTenant | null>(null);

export function useTenant(): InTenant {
  const tenant = useContext(Context);
  if (tenant === null) throw new Error("No tenant is open.");
  return tenant;
}

export function TenantProvider({
  slug,
  children,
}: {
  readonly slug: string;
  readonly children: ReactNode;
}) {
  const user = useUser();
  const api = `/api/v1/tenants/${encodeURIComponent(slug)}`;
  const client = useDataClient(slug);
  const { data: role = "viewer" } = useQuery({
    queryKey: [slug, "role"],
    queryFn: async () => (await call<Member>(`${api}/members/${user.id}`)).role,
  });
  const value = useMemo<InTenant | null>(
    () => client && { slug, api, client, role, may: (least: Role) => RANK[role] >= RANK[least] },
    [slug, api, client, role],
  );
  return value && <Context value={value}>{children}</Context>;
}

export function useTenants() {
  return useQuery({ queryKey: ["tenants"], queryFn: () => all<Tenant>("/api/v1/tenants") });
}

export function useCollections() {
  const { slug, api } = useTenant();
  return useQuery({
    queryKey: [slug, "collections"],
    queryFn: () => all<Collection>(`${api}/collections`),
    select: (tenants) => [...tenants].sort((a, b) => a.name.localeCompare(b.name)),
  });
}

/** Creates an SDK client that acts for the session, and closes it with the page. */
function useDataClient(slug: string): Client | null {
  const [client, setClient] = useState<Client | null>(null);
  useEffect(() => {
    const made = dataClient(slug);
    setClient(made);
    return () => made.close();
  }, [slug]);
  return client;
}

function dataClient(slug: string): Client {
  return createClient({
    url: location.origin,
    tenant: slug,
    typedNumbers: true,
    // Each page shows the errors of its own queries.
    onError: () => {},
    // A WebSocket cannot carry the header that names the tenant; a ticket stands for both.
    getTicket: async () => {
      const headers = sessionHeaders(slug);
      const answer = await call<{ ticket: string }>("/v1/realtime/tickets", {
        method: "POST",
        body: {},
        headers,
      });
      return answer.ticket;
    },
    fetch: (address, init) =>
      fetch(address, {
        ...init,
        credentials: "same-origin",
        headers: { ...(init?.headers as Record<string, string>), ...sessionHeaders(slug) },
      }),
  });
}

/** Calls the data plane where the SDK has no call for it. */
export async function dataCall<T>(slug: string, path: string, body: unknown): Promise<T> {
  return call<T>(path, { method: "POST", body, headers: sessionHeaders(slug) });
}
