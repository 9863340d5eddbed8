/** Creates an account. A link sent by e-mail verifies the address. */

import { useState } from "react";
import { Link } from "wouter";
import { call } from "../../api/control";
import { Door, DoorForm } from "./Door";
import { EmailInput, NameInput, NewPasswordInput } from "./fields";

export default function SignUp() {
  const [values, setValues] = useState({ name: "", email: "", password: "" });
  const [isSent, setSent] = useState(false);
  async function signUp() {
    await call("/api/v1/auth/sign-up", { method: "POST", body: values });
    setSent(true);
  }
  if (isSent) {
    return (
      <Door
        title="Check your inbox"
        lead={`We sent a link to ${values.email}. Open it to finish signing up.`}
      >
        <Link href="/">Back to sign-in</Link>
      </Door>
    );
  }
  return (
    <Door title="Create an account">
      <DoorForm action="Sign up" onSubmit={signUp}>
        <NameInput value={values.name} onChange={(name) => setValues({ ...values, name })} />
        <EmailInput value={values.email} onChange={(email) => setValues({ ...values, email })} />
        <NewPasswordInput
          value={values.password}
          onChange={(password) => setValues({ ...values, password })}
        />
      </DoorForm>
      <div className="more">
        <Link href="/">I already have an account</Link>
      </div>
    </Door>
  );
}
