/** Sign-in. It is shown instead of the requested page, which follows. */

import { useState } from "react";
import { Link } from "wouter";
import { useSigning } from "../../api/session";
import { Door, DoorForm } from "./Door";
import { EmailInput, PasswordInput } from "./fields";

export function SignIn() {
  const { signIn } = useSigning();
  const [email, setEmail] = useState("");
  const [password, setPassword] = useState("");
  return (
    <Door title="Sign in" lead="Welcome back.">
      <DoorForm action="Sign in" onSubmit={() => signIn(email, password)}>
        <EmailInput value={email} onChange={setEmail} />
        <PasswordInput value={password} onChange={setPassword} />
      </DoorForm>
      <div className="more">
        <Link href="/sign-up">Create an account</Link>
        <Link href="/forgot-password">Forgot the password?</Link>
      </div>
    </Door>
  );
}
