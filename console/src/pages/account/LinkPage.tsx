/**
 * The pages behind links: from mails, and the one that the launcher prints.
 *
 * The token is in the fragment, which no server is shown. It is taken out of the address at once,
 * so that it stays in no history.
 */

import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { Link, useLocation } from "wouter";
import { call } from "../../api/control";
import { type SignedIn, useSession, useSigning } from "../../api/session";
import { ErrorNotice } from "../../ui/ErrorNotice";
import { Door, DoorForm } from "./Door";
import { NameInput, NewPasswordInput } from "./fields";

export default function LinkPage() {
  const [path] = useLocation();
  const [token] = useState(tokenOfAddress);
  useEffect(() => history.replaceState(null, "", location.pathname), []);
  if (token === "") return <Door title="This link is not complete" lead="Copy all of it." />;
  if (path === "/sign-in") return <SignInByLink token={token} />;
  if (path === "/verify-email") return <VerifyEmail token={token} />;
  if (path === "/reset-password") return <ResetPassword token={token} />;
  return <Invitation token={token} />;
}

interface Token {
  readonly token: string;
}

function tokenOfAddress(): string {
  return new URLSearchParams(location.hash.slice(1)).get("token") ?? "";
}

/** A link is used up by its first use, and effects run twice while developing. */
const used = new Map<string, Promise<SignedIn>>();

function SignInByLink({ token }: Token) {
  const { enter } = useSigning();
  const [, go] = useLocation();
  const [error, setError] = useState<unknown>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: once for each token.
  useEffect(() => {
    const body = { token };
    const asked =
      used.get(token) ?? call<SignedIn>("/api/v1/auth/login-link", { method: "POST", body });
    used.set(token, asked);
    asked.then((session) => {
      enter(session);
      go("/", { replace: true });
    }, setError);
  }, [token]);
  return (
    <Door title={error === null ? "Signing in …" : "The link does not work"}>
      {error !== null && (
        <>
          <ErrorNotice error={error} />
          <Link href="/">Sign in with a password</Link>
        </>
      )}
    </Door>
  );
}

function VerifyEmail({ token }: Token) {
  const [email, setEmail] = useState<string | null>(null);
  async function verify() {
    const answer = await call<{ email: string }>("/api/v1/auth/verify-email", {
      method: "POST",
      body: { token },
    });
    setEmail(answer.email);
  }
  if (email !== null) {
    return (
      <Door title="Verified" lead={`${email} is yours.`}>
        <Link className="button main" href="/">
          Go on
        </Link>
      </Door>
    );
  }
  return (
    <Door title="Verify your address">
      <DoorForm action="This is my address" onSubmit={verify}>
        <p className="soft">One click, and the address is yours.</p>
      </DoorForm>
    </Door>
  );
}

function ResetPassword({ token }: Token) {
  const [password, setPassword] = useState("");
  const [isDone, setDone] = useState(false);
  async function reset() {
    await call("/api/v1/auth/password-reset:confirm", {
      method: "POST",
      body: { token, password },
    });
    setDone(true);
  }
  if (isDone) {
    return (
      <Door title="The password is set" lead="All sessions have ended. Sign in with the new one.">
        <Link className="button main" href="/">
          Sign in
        </Link>
      </Door>
    );
  }
  return (
    <Door title="Set a new password">
      <DoorForm action="Set the password" onSubmit={reset}>
        <NewPasswordInput label="New password" value={password} onChange={setPassword} />
      </DoorForm>
    </Door>
  );
}

interface Invited {
  readonly tenant: { readonly slug: string; readonly name: string };
  readonly email: string;
  readonly role: string;
  readonly invited_by: string | null;
  readonly has_account: boolean;
}

function Invitation({ token }: Token) {
  const { session } = useSession();
  const { data, error } = useQuery({
    queryKey: ["invitation", token],
    queryFn: () =>
      call<Invited>("/api/v1/invitations:look-up", { method: "POST", body: { token } }),
  });
  if (error !== null)
    return (
      <Door title="The invitation does not work">
        <ErrorNotice error={error} />
      </Door>
    );
  if (data === undefined || session === undefined) return null;
  const lead = `${data.invited_by ?? "Somebody"} invites ${data.email} as ${data.role}.`;
  return (
    <Door title={`Join ${data.tenant.name || data.tenant.slug}`} lead={lead}>
      {session !== null && <Accept token={token} slug={data.tenant.slug} />}
      {session === null && !data.has_account && <JoinAnew token={token} invited={data} />}
      {session === null && data.has_account && (
        <p className="soft">
          <Link href="/">Sign in</Link> with this address, then open the link again.
        </p>
      )}
    </Door>
  );
}

function Accept({ token, slug }: Token & { readonly slug: string }) {
  async function accept() {
    await call("/api/v1/invitations:accept", { method: "POST", body: { token } });
    location.assign(`/t/${slug}`);
  }
  return (
    <DoorForm action="Accept" onSubmit={accept}>
      <p className="soft">You join with the account that you are signed in with.</p>
    </DoorForm>
  );
}

function JoinAnew({ token, invited }: Token & { readonly invited: Invited }) {
  const { enter } = useSigning();
  const [, go] = useLocation();
  const [values, setValues] = useState({ name: "", password: "" });
  async function join() {
    const body = { ...values, email: invited.email, invitation: token };
    enter(await call<SignedIn>("/api/v1/auth/sign-up", { method: "POST", body }));
    go(`/t/${invited.tenant.slug}`);
  }
  return (
    <DoorForm action="Make an account and join" onSubmit={join}>
      <NameInput value={values.name} onChange={(name) => setValues({ ...values, name })} />
      <NewPasswordInput
        value={values.password}
        onChange={(password) => setValues({ ...values, password })}
      />
    </DoorForm>
  );
}
