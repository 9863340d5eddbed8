/** Signing in. It takes the place of whatever page was asked for, which follows. */

import { useState } from "react";
import { Link } from "wouter";
import { useSigning } from "../../api/session";
import { Field } from "../../ui/Field";
import { Door, DoorForm } from "./Door";

export function SignIn() {
  const { signIn } = useSigning();
  const [email, setEmail] = useState("");
  const [password, setPassword] = useState("");
  return (
    <Door title="Sign in" lead="Welcome back. Your data has kept moving.">
      <DoorForm action="Sign in" onSubmit={() => signIn(email, password)}>
        <Field label="E-mail address">
          <input
            className="input"
            type="email"
            name="email"
            autoComplete="username"
            required
            value={email}
            onChange={(event) => setEmail(event.target.value)}
          />
        </Field>
        <Field label="Password">
          <input
            className="input"
            type="password"
            name="password"
            autoComplete="current-password"
            required
            value={password}
            onChange={(event) => setPassword(event.target.value)}
          />
        </Field>
      </DoorForm>
      <div className="more">
        <Link href="/sign-up">Make an account</Link>
        <Link href="/forgot-password">Forgot the password?</Link>
      </div>
    </Door>
  );
}
