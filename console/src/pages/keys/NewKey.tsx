/** The permissions of a new key. */

import { useState } from "react";
import { useCollections, useTenant } from "../../api/tenant";
import { FormDialog } from "../../ui/Dialog";
import { Field, Segments } from "../../ui/Field";

const SCOPES = [
  "documents:read",
  "documents:write",
  "topics:read",
  "topics:write",
  "aggregates:read",
  "aggregates:write",
  "analytics:read",
  "analytics:write",
] as const;
const USUAL = ["documents:read", "documents:write"];

interface NewKeyProps {
  readonly onCreate: (body: object) => Promise<void>;
  readonly onClose: () => void;
}

export function NewKey({ onCreate, onClose }: NewKeyProps) {
  const { may } = useTenant();
  const { data: collections = [] } = useCollections();
  const [name, setName] = useState("");
  const [kind, setKind] = useState<"secret" | "publishable">("secret");
  const [scopes, setScopes] = useState<readonly string[]>(USUAL);
  const [only, setOnly] = useState<readonly string[]>([]);
  const [days, setDays] = useState("");
  const offered = kind === "publishable" ? USUAL : may("admin") ? [...SCOPES, "admin"] : SCOPES;
  const chosen = scopes.filter((scope) => (offered as readonly string[]).includes(scope));
  return (
    <FormDialog
      title="New API key"
      action="Create key"
      canSubmit={name.trim() !== "" && chosen.length > 0}
      onSubmit={() =>
        onCreate({ name, kind, scopes: chosen, collections: only, expires_at: momentIn(days) })
      }
      onClose={onClose}
    >
      <Segments
        label="Kind"
        options={[
          ["secret", "Secret, for servers"],
          ["publishable", "Publishable, for browsers"],
        ]}
        value={kind}
        onChange={setKind}
      />
      <Field label="Name">
        <input
          className="input"
          value={name}
          placeholder="Back end"
          onChange={(event) => setName(event.target.value)}
        />
      </Field>
      <Field label="Expires">
        <select className="select" value={days} onChange={(event) => setDays(event.target.value)}>
          <option value="">Never</option>
          {EXPIRY_DAYS.map((choice) => (
            <option key={choice} value={choice}>
              In {choice} days
            </option>
          ))}
        </select>
      </Field>
      <Checks label="Scopes" options={offered} chosen={chosen} onChange={setScopes} />
      {collections.length > 0 && (
        <Checks
          label="Collections (all if none is selected)"
          options={collections.map((collection) => collection.name)}
          chosen={only}
          onChange={setOnly}
        />
      )}
    </FormDialog>
  );
}

const EXPIRY_DAYS = [7, 30, 90, 365] as const;
const DAY_MS = 86_400_000;

function momentIn(days: string): string | null {
  return days === "" ? null : new Date(Date.now() + Number(days) * DAY_MS).toISOString();
}

interface ChecksProps {
  readonly label: string;
  readonly options: readonly string[];
  readonly chosen: readonly string[];
  readonly onChange: (chosen: readonly string[]) => void;
}

export function Checks({ label, options, chosen, onChange }: ChecksProps) {
  return (
    <fieldset className="checks">
      <legend>{label}</legend>
      {options.map((option) => (
        <label key={option} className="check">
          <input
            type="checkbox"
            checked={chosen.includes(option)}
            onChange={(event) =>
              onChange(
                event.target.checked
                  ? [...chosen, option]
                  : chosen.filter((scope) => scope !== option),
              )
            }
          />
          <span className="mono">{option}</span>
        </label>
      ))}
    </fieldset>
  );
}
