/** Registers an issuer of user tokens. */

import { useState } from "react";
import { FormDialog } from "../../ui/Dialog";
import { Field, Segments } from "../../ui/Field";

interface NewIssuerProps {
  readonly onCreate: (body: object) => Promise<unknown>;
  readonly onClose: () => void;
}

type SignedBy = "jwks" | "secret";

const HOUR_S = 3600;

const SIGNATURES: readonly (readonly [SignedBy, string])[] = [
  ["jwks", "Public keys"],
  ["secret", "Shared secret"],
];

export function NewIssuer({ onCreate, onClose }: NewIssuerProps) {
  const [values, setValues] = useState({
    name: "",
    issuer: "",
    audience: "",
    proof: "",
    hours: "24",
  });
  const [by, setBy] = useState<SignedBy>("jwks");
  const set = (member: keyof typeof values) => (event: { target: { value: string } }) =>
    setValues({ ...values, [member]: event.target.value });
  const { name, issuer, audience, proof } = values;
  const maxTokenAge = Math.round(Number(values.hours) * HOUR_S);
  const verification =
    by === "jwks"
      ? { algorithms: ["RS256", "ES256"], jwks_url: proof }
      : { algorithms: ["HS256"], secret: proof };
  return (
    <FormDialog
      title="New token issuer"
      action="Register"
      canSubmit={name !== "" && issuer !== "" && audience !== "" && maxTokenAge > 0}
      onSubmit={() =>
        onCreate({ name, issuer, audience, max_token_age_s: maxTokenAge, ...verification })
      }
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
        options={SIGNATURES}
        value={by}
        onChange={(chosen) => {
          setBy(chosen);
          setValues({ ...values, proof: "" });
        }}
      />
      <ProofField by={by} value={proof} onChange={set("proof")} />
      <Field
        label="Maximum token age (hours)"
        hint="A token is rejected this long after it was issued (iat), whatever its expiry."
      >
        <input
          className="input mono"
          type="number"
          min="0"
          step="any"
          value={values.hours}
          onChange={set("hours")}
        />
      </Field>
    </FormDialog>
  );
}

interface ProofFieldProps {
  readonly by: SignedBy;
  readonly value: string;
  readonly onChange: (event: { target: { value: string } }) => void;
}

function ProofField({ by, value, onChange }: ProofFieldProps) {
  if (by === "jwks") {
    return (
      <Field label="JWKS URL">
        <input
          className="input mono"
          placeholder="https://login.example.com/.well-known/jwks.json"
          value={value}
          onChange={onChange}
        />
      </Field>
    );
  }
  return (
    <Field label="Shared secret" hint="At least 32 bytes.">
      <input
        className="input mono"
        type="password"
        autoComplete="off"
        value={value}
        onChange={onChange}
      />
    </Field>
  );
}
