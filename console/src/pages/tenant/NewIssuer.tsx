/** Registers who issues users' tokens. */

import { useState } from "react";
import { FormDialog } from "../../ui/Dialog";
import { Field, Segments } from "../../ui/Field";

interface NewIssuerProps {
  readonly onCreate: (body: object) => Promise<unknown>;
  readonly onClose: () => void;
}

export function NewIssuer({ onCreate, onClose }: NewIssuerProps) {
  const [values, setValues] = useState({
    name: "",
    issuer: "",
    audience: "",
    jwks: "",
    secret: "",
  });
  const [by, setBy] = useState<"jwks" | "secret">("jwks");
  const set = (member: keyof typeof values) => (event: { target: { value: string } }) =>
    setValues({ ...values, [member]: event.target.value });
  const { name, issuer, audience } = values;
  const proof =
    by === "jwks"
      ? { algorithms: ["RS256", "ES256"], jwks_url: values.jwks }
      : { algorithms: ["HS256"], secret: values.secret };
  return (
    <FormDialog
      title="New token issuer"
      action="Register"
      canSubmit={name !== "" && issuer !== "" && audience !== ""}
      onSubmit={() => onCreate({ name, issuer, audience, ...proof })}
      onClose={onClose}
    >
      <Field label="Name">
        <input className="input mono" placeholder="main" value={name} onChange={set("name")} />
      </Field>
      <Field label="Issuer (iss)">
        <input
          className="input mono"
          placeholder="https://login.example.com/"
          value={issuer}
          onChange={set("issuer")}
        />
      </Field>
      <Field label="Audience (aud)">
        <input className="input mono" value={audience} onChange={set("audience")} />
      </Field>
      <Segments
        label="Signatures"
        options={[
          ["jwks", "Public keys"],
          ["secret", "Shared secret"],
        ]}
        value={by}
        onChange={setBy}
      />
      {by === "jwks" ? (
        <Field label="Address of the keys (JWKS)">
          <input
            className="input mono"
            placeholder="https://login.example.com/.well-known/jwks.json"
            value={values.jwks}
            onChange={set("jwks")}
          />
        </Field>
      ) : (
        <Field label="Shared secret" hint="At least 32 bytes.">
          <input
            className="input mono"
            type="password"
            autoComplete="off"
            value={values.secret}
            onChange={set("secret")}
          />
        </Field>
      )}
    </FormDialog>
  );
}
