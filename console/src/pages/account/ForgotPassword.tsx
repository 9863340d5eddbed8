/** Asking for a link that sets a new password. */

import { useState } from "react";
import { Link } from "wouter";
import { call } from "../../api/control";
import { Field } from "../../ui/Field";
import { Door, DoorForm } from "./Door";

export default function ForgotPassword() {
  const [email, setEmail] = useState("");
  const [isSent, setSent] = useState(false);
  async function send() {
    await call("/api/v1/auth/password-reset", { method: "POST", body: { email } });
    setSent(true);
  }
  return (
    <Door
      title="A new password"
      lead={
        isSent
          ? `If ${email} has an account, a link is on its way. It is good for an hour.`
          : "You get a link by mail with which you set a new one."
      }
    >
      {!isSent && (
        <DoorForm action="Send the link" onSubmit={send}>
          <Field label="E-mail address">
            <input
              className="input"
              type="email"
              autoComplete="username"
              required
              value={email}
              onChange={(event) => setEmail(event.target.value)}
            />
          </Field>
        </DoorForm>
      )}
      <div className="more">
        <Link href="/">Back to signing in</Link>
      </div>
    </Door>
  );
}
