/** Making an account. The address is shown to be one's own by a mailed link. */

import { useState } from "react";
import { Link } from "wouter";
import { call } from "../../api/control";
import { Field } from "../../ui/Field";
import { Door, DoorForm } from "./Door";

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
        title="Look into your mail"
        lead={`A link is on its way to ${values.email}. Open it to finish.`}
      >
        <Link href="/">Back to signing in</Link>
      </Door>
    );
  }
  return (
    <Door title="Make an account">
      <DoorForm action="Sign up" onSubmit={signUp}>
        <Field label="Your name">
          <input
            className="input"
            autoComplete="name"
            value={values.name}
            onChange={(event) => setValues({ ...values, name: event.target.value })}
          />
        </Field>
        <Field label="E-mail address">
          <input
            className="input"
            type="email"
            autoComplete="username"
            required
            value={values.email}
            onChange={(event) => setValues({ ...values, email: event.target.value })}
          />
        </Field>
        <Field label="Password" hint="At least ten characters.">
          <input
            className="input"
            type="password"
            autoComplete="new-password"
            minLength={10}
            required
            value={values.password}
            onChange={(event) => setValues({ ...values, password: event.target.value })}
          />
        </Field>
      </DoorForm>
      <div className="more">
        <Link href="/">I have an account</Link>
      </div>
    </Door>
  );
}
