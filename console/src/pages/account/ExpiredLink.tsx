/** A link that no longer works: expired, used before, or not copied in full. */

import { useState } from "react";
import { Link } from "wouter";
import { call } from "../../api/control";
import { Door, DoorForm } from "./Door";
import { EmailInput } from "./fields";
import type { LinkPurpose } from "./links";

const TEXTS: Record<LinkPurpose, readonly [title: string, lead: string]> = {
  "sign-in": [
    "This sign-in link has expired",
    "A sign-in link works once, within 15 minutes. Print a new one with " +
      "“manage.py sign-in-link”, sign in with your password, or have a link emailed to you.",
  ],
  "verify-email": [
    "This verification link has expired",
    "A verification link works once, within two days. Enter your address to get a new one.",
  ],
  "reset-password": [
    "This password link has expired",
    "A link to set a password works once, within an hour. Enter your address to get a new one.",
  ],
  invitation: [
    "This invitation has expired",
    "An invitation works once, within seven days. Ask the person who invited you to send it again.",
  ],
};

/** The call that emails a new link; an invitation comes from a member instead. */
const MAILED_BY: Record<LinkPurpose, string | null> = {
  "sign-in": "/api/v1/auth/password-reset",
  "verify-email": "/api/v1/auth/verify-email:resend",
  "reset-password": "/api/v1/auth/password-reset",
  invitation: null,
};

export function ExpiredLink({ purpose }: { readonly purpose: LinkPurpose }) {
  const [title, lead] = TEXTS[purpose];
  const path = MAILED_BY[purpose];
  return (
    <Door title={title} lead={lead}>
      {purpose === "sign-in" && (
        <Link className="button main" href="/">
          Sign in with a password
        </Link>
      )}
      {path !== null && <NewLink path={path} isMain={purpose !== "sign-in"} />}
      {purpose !== "sign-in" && (
        <div className="more">
          <Link href="/">Back to sign-in</Link>
        </div>
      )}
    </Door>
  );
}

function NewLink({ path, isMain }: { readonly path: string; readonly isMain: boolean }) {
  const [email, setEmail] = useState("");
  const [isSent, setSent] = useState(false);
  async function send() {
    await call(path, { method: "POST", body: { email } });
    setSent(true);
  }
  if (isSent) {
    return (
      <p className="notice" role="status">
        If {email} has an account, we have sent a new link.
      </p>
    );
  }
  return (
    <DoorForm action="Email me a new link" isMain={isMain} onSubmit={send}>
      <EmailInput value={email} onChange={setEmail} />
    </DoorForm>
  );
}
