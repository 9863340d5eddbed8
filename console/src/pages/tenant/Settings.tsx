/** The settings of the tenant: its name, allowed origins, and trusted token issuers. */

import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "../../api/control";
import { useAttempt, useChange, useList, useOne } from "../../api/list";
import { useTenant } from "../../api/tenant";
import type { Tenant } from "../../api/types";
import { PageHead } from "../../shell/Shell";
import { Confirm } from "../../ui/Confirm";
import { Skeleton } from "../../ui/Empty";
import { ErrorNotice } from "../../ui/ErrorNotice";
import { Field } from "../../ui/Field";
import { Icon } from "../../ui/Icon";
import { Table } from "../../ui/Listing";
import { useToasts } from "../../ui/toasts";
import { NewIssuer } from "./NewIssuer";

export default function Settings() {
  const { may } = useTenant();
  const { data, error } = useOne<Tenant>("");
  return (
    <>
      <PageHead title="Settings" />
      <div className="page-body">
        <div className="column narrow">
          {error !== null && <ErrorNotice error={error} />}
          {data === undefined && error === null && <Skeleton />}
          {data !== undefined && (
            <>
              <Name key={`name-${data.name}`} tenant={data} />
              <Origins key={`origins-${data.cors_origins.join()}`} tenant={data} />
            </>
          )}
          <Issuers />
          {may("owner") && <Deletion />}
        </div>
      </div>
    </>
  );
}

/** Saves members of the tenant. */
function useTenantChange() {
  const change = useChange("");
  const client = useQueryClient();
  return async (body: Partial<Tenant>) => {
    await change("", { method: "PATCH", body });
    await client.invalidateQueries({ queryKey: ["tenants"] });
  };
}

function Name({ tenant }: { readonly tenant: Tenant }) {
  const { may } = useTenant();
  const change = useTenantChange();
  const attempt = useAttempt();
  const { showMessage } = useToasts();
  const [name, setName] = useState(tenant.name);
  async function save() {
    await change({ name });
    showMessage("Renamed.", () => change({ name: tenant.name }));
  }
  return (
    <section className="card life" aria-label="Name">
      <h2>Name</h2>
      <Field
        label="Display name"
        hint={
          <>
            In URLs it is <code>{tenant.slug}</code>, which cannot be changed.
          </>
        }
      >
        <input
          className="input"
          disabled={!may("admin")}
          value={name}
          onChange={(event) => setName(event.target.value)}
        />
      </Field>
      {name !== tenant.name && (
        <div>
          <button type="button" className="button main" onClick={() => attempt(save)}>
            Rename
          </button>
        </div>
      )}
    </section>
  );
}

function Origins({ tenant }: { readonly tenant: Tenant }) {
  const { may } = useTenant();
  const change = useTenantChange();
  const { showMessage } = useToasts();
  const [text, setText] = useState(tenant.cors_origins.join("\n"));
  const [error, setError] = useState<unknown>(null);
  async function save() {
    setError(null);
    try {
      await change({ cors_origins: originsIn(text) });
      showMessage("Origins saved.");
    } catch (thrown) {
      setError(thrown);
    }
  }
  return (
    <section className="card life" aria-label="Origins">
      <h2>Origins of your apps</h2>
      <p className="soft">
        Web pages of these origins can use a publishable key. One per line, such as{" "}
        <code>https://app.example.com</code>.
      </p>
      <textarea
        className="area mono"
        aria-label="Origins"
        rows={Math.max(3, tenant.cors_origins.length + 1)}
        disabled={!may("admin")}
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      {error !== null && <ErrorNotice error={error} />}
      {text !== tenant.cors_origins.join("\n") && (
        <div>
          <button type="button" className="button main" onClick={save}>
            Save
          </button>
        </div>
      )}
    </section>
  );
}

function originsIn(text: string): string[] {
  return text
    .split(/[\n,]/)
    .map((origin) => origin.trim())
    .filter(Boolean);
}

interface Issuer {
  readonly id: string;
  readonly name: string;
  readonly issuer: string;
  readonly audience: string;
  readonly algorithms: readonly string[];
  readonly jwks_url: string | null;
}

function Issuers() {
  const { may } = useTenant();
  const { data = [] } = useList<Issuer>("issuers");
  const change = useChange("issuers");
  const [isAdding, setAdding] = useState(false);
  const [removed, setRemoved] = useState<Issuer | null>(null);
  return (
    <section className="card life" aria-label="Token issuers">
      <div className="section-head">
        <h2>Token issuers</h2>
        {may("admin") && (
          <button type="button" className="button" onClick={() => setAdding(true)}>
            <Icon name="plus" size={14} /> New issuer
          </button>
        )}
      </div>
      <p className="soft">
        The services that authenticate your users. Their tokens, sent with a publishable key,
        provide <code>$auth</code> in access rules.
      </p>
      {data.length > 0 && <IssuerTable issuers={data} onRemove={setRemoved} />}
      {isAdding && (
        <NewIssuer
          onCreate={(body) => change("issuers", { method: "POST", body })}
          onClose={() => setAdding(false)}
        />
      )}
      {removed !== null && (
        <Confirm
          title={`Remove the token issuer ${removed.name}?`}
          action="Remove"
          onConfirm={() => change(`issuers/${removed.id}`, { method: "DELETE" })}
          onClose={() => setRemoved(null)}
        >
          Within a second, its tokens are rejected and the connections opened with them are closed.
        </Confirm>
      )}
    </section>
  );
}

interface IssuerTableProps {
  readonly issuers: readonly Issuer[];
  readonly onRemove: (issuer: Issuer) => void;
}

function IssuerTable({ issuers, onRemove }: IssuerTableProps) {
  const { may } = useTenant();
  return (
    <Table stacks heads={["Name", "iss", "aud", "Algorithms", ""]}>
      {issuers.map((issuer) => (
        <tr key={issuer.id}>
          <td>{issuer.name}</td>
          <td className="mono">{issuer.issuer}</td>
          <td className="mono">{issuer.audience}</td>
          <td className="mono">{issuer.algorithms.join(", ")}</td>
          <td className="end">
            {may("admin") && (
              <button
                type="button"
                className="button small icon plain"
                aria-label={`Remove ${issuer.name}`}
                onClick={() => onRemove(issuer)}
              >
                <Icon name="trash" size={14} />
              </button>
            )}
          </td>
        </tr>
      ))}
    </Table>
  );
}

function Deletion() {
  const { slug, api } = useTenant();
  const [isAsking, setAsking] = useState(false);
  async function remove() {
    await call(api, { method: "DELETE" });
    location.assign("/");
  }
  return (
    <section className="card life" aria-label="Delete the tenant">
      <h2>Delete the tenant</h2>
      <p className="soft">
        Keys stop working immediately. An owner can restore the tenant for some days; then
        everything is deleted.
      </p>
      <div>
        <button type="button" className="button danger" onClick={() => setAsking(true)}>
          Delete {slug}
        </button>
      </div>
      {isAsking && (
        <Confirm
          title={`Delete ${slug}?`}
          action="Delete"
          typed={slug}
          onConfirm={remove}
          onClose={() => setAsking(false)}
        >
          All of its apps stop working.
        </Confirm>
      )}
    </section>
  );
}
