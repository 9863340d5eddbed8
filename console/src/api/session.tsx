/** The signed-in user. */

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect } from "react";
import { ServerError } from "rillbase";
import { call, holdCsrf, onSessionEnd } from "./control";
import { dropDrafts } from "./drafts";

export interface User {
  readonly id: string;
  readonly email: string;
  readonly email_verified: boolean;
  readonly name: string;
  readonly is_staff: boolean;
}

export interface SignedIn {
  readonly user: User;
  readonly session_id: string | null;
  readonly csrf_token: string | null;
}

const KEY = ["session"];
const Context = createContext<User | null>(null);

/** Returns the signed-in user; for pages that are only shown to one. */
export function useUser(): User {
  const user = useContext(Context);
  if (user === null) throw new Error("You are not signed in.");
  return user;
}

/** Returns the session: undefined while it loads, null if no user is signed in. */
export function useSession(): { session: SignedIn | null | undefined; error: unknown } {
  const client = useQueryClient();
  useEffect(() => {
    onSessionEnd(() => client.setQueryData(KEY, null));
  }, [client]);
  const { data, error } = useQuery({
    queryKey: KEY,
    queryFn: read,
    staleTime: Number.POSITIVE_INFINITY,
  });
  return { session: data, error };
}

export function SessionProvider({
  user,
  children,
}: {
  readonly user: User;
  readonly children: ReactNode;
}) {
  return <Context value={user}>{children}</Context>;
}

/** Returns how to sign in and out. */
export function useSigning() {
  const client = useQueryClient();
  function enter(session: SignedIn) {
    holdCsrf(session.csrf_token);
    client.setQueryData(KEY, session);
  }
  return {
    enter,
    async signIn(email: string, password: string) {
      enter(
        await call<SignedIn>("/api/v1/auth/login", { method: "POST", body: { email, password } }),
      );
    },
    async signOut() {
      await call("/api/v1/auth/logout", { method: "POST" });
      holdCsrf(null);
      dropDrafts();
      // The page observes the session: removed from the cache, its end would go unnoticed.
      client.setQueryData(KEY, null);
      client.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== KEY[0] });
    },
  };
}

async function read(): Promise<SignedIn | null> {
  try {
    const session = await call<SignedIn>("/api/v1/auth/session");
    holdCsrf(session.csrf_token);
    return session;
  } catch (error) {
    if (error instanceof ServerError && error.status === 401) return null;
    throw error;
  }
}
