/**
 * The pages behind links: from mails, and the one that the launcher prints.
 *
 * The token is in the fragment, which no server is shown. It is taken out of the address at once,
 * so that it stays in no history.
 */

import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect, useState } from "react";
import { Link, useLocation } from "wouter";
import { call } from "../../api/control";
import { type SignedIn, useSession, useSigning } from "../../api/session";
import { ErrorNotice } from "../../ui/ErrorNotice";
import { Door, DoorForm } from "./Door";
import { ExpiredLink } from "./ExpiredLink";
import { NameInput, NewPasswordInput } from "./fields";
import { isExpired, type LinkPurpose, purposeOf, tokenOf } from "./links";

const PAGES: Record<LinkPurpose, (props: LinkProps) => ReactNode> = {
  "sign-in": SignInByLink,
  "verify-email": VerifyEmail,
  "reset-password": ResetPassword,
  invitation: Invitation,
};

export default function LinkPage() {
  const [path] = useLocation();
  const [token] = useState(() => tokenOf(location.hash));
  const [hasExpired, setExpired] = useState(false);
  useEffect(() => history.replaceState(null, "", location.pathname), []);
  const purpose = purposeOf(path);
  if (token === null || hasExpired) return <ExpiredLink purpose={purpose} />;
  const Page = PAGES[purpose];
  return <Page token={token} onExpired={() => setExpired(true)} />;
}

interface Token {
  readonly token: string;
}

interface LinkProps extends Token {
  readonly onExpired: () => void;
}

/** Calls the server with the link's token, and reports a link that no longer works. */
async function callWithLink<T>(path: string, body: object, onExpired: () => void): Promise<T> {
  try {
    return await call<T>(path, { method: "POST", body });
  } catch (error) {
    if (isExpired(error)) onExpired();
    throw error;
  }
}

/** A link is used up by its first use, and effects run twice while developing. */
const used = new Map<string, Promise<SignedIn>>();

function SignInByLink({ token, onExpired }: LinkProps) {
  const { enter } = useSigning();
  const [, go] = useLocation();
  const [error, setError] = useState<unknown>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: once for each token.
  useEffect(() => {
    const signingIn =
      used.get(token) ?? callWithLink<SignedIn>("/api/v1/auth/login-link", { token }, onExpired);
    used.set(token, signingIn);
    signingIn.then((session) => {
      enter(session);
      go("/", { replace: true });
    }, setError);
  }, [token]);
  return (
    <Door title={error === null ? "Signing in …" : "Sign-in failed"}>
      {error !== null && (
        <>
          <ErrorNotice error={error} />
          <Link href="/">Sign in with a password</Link>
        </>
      )}
    </Door>
  );
}

function VerifyEmail({ token, onExpired }: LinkProps) {
  const [email, setEmail] = useState<string | null>(null);
  async function verify() {
    const path = "/api/v1/auth/verify-email";
    setEmail((await callWithLink<{ email: string }>(path, { token }, onExpired)).email);
  }
  if (email !== null) {
    return (
      <Door title="Address verified" lead={`${email} is verified.`}>
        <Link className="button main" href="/">
          Continue
        </Link>
      </Door>
    );
  }
  return (
    <Door title="Verify your address">
      <DoorForm action="Verify the address" onSubmit={verify}>
        <p className="soft">Confirm that this email address is yours.</p>
      </DoorForm>
    </Door>
  );
}

function ResetPassword({ token, onExpired }: LinkProps) {
  const [password, setPassword] = useState("");
  const [isDone, setDone] = useState(false);
  async function reset() {
    await callWithLink("/api/v1/auth/password-reset:confirm", { token, password }, onExpired);
    setDone(true);
  }
  if (isDone) {
    return (
      <Door title="Password changed" lead="All sessions have ended. Sign in with the new password.">
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

function Invitation({ token }: LinkProps) {
  const { session } = useSession();
  const { data, error } = useQuery({
    queryKey: ["invitation", token],
    queryFn: () =>
      call<Invited>("/api/v1/invitations:look-up", { method: "POST", body: { token } }),
  });
  if (isExpired(error)) return <ExpiredLink purpose="invitation" />;
  if (error !== null)
    return (
      <Door title="The invitation could not be loaded">
        <ErrorNotice error={error} />
      </Door>
    );
  if (data === undefined || session === undefined) return null;
  const lead = `${data.invited_by ?? "A member"} invites ${data.email} as ${data.role}.`;
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
    <DoorForm action="Create an account and join" onSubmit={join}>
      <NameInput value={values.name} onChange={(name) => setValues({ ...values, name })} />
      <NewPasswordInput
        value={values.password}
        onChange={(password) => setValues({ ...values, password })}
      />
    </DoorForm>
  );
}
