/** Requests a link that sets a new password. */

import { useState } from "react";
import { Link } from "wouter";
import { call } from "../../api/control";
import { Door, DoorForm } from "./Door";
import { EmailInput } from "./fields";

export default function ForgotPassword() {
  const [email, setEmail] = useState("");
  const [isSent, setSent] = useState(false);
  async function send() {
    await call("/api/v1/auth/password-reset", { method: "POST", body: { email } });
    setSent(true);
  }
  return (
    <Door
      title="Reset your password"
      lead={
        isSent
          ? `If ${email} has an account, we have sent a link. It is valid for one hour.`
          : "You receive a link by email with which you can set a new password."
      }
    >
      {!isSent && (
        <DoorForm action="Send the link" onSubmit={send}>
          <EmailInput value={email} onChange={setEmail} />
        </DoorForm>
      )}
      <div className="more">
        <Link href="/">Back to sign-in</Link>
      </div>
    </Door>
  );
}
