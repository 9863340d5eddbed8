/** The user's account: name, password, browsers, personal tokens. */

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { Link } from "wouter";
import { all, call } from "../../api/control";
import { useAttempt } from "../../api/list";
import { useUser } from "../../api/session";
import { FormDialog } from "../../ui/Dialog";
import { Field } from "../../ui/Field";
import { FormFoot } from "../../ui/FormFoot";
import { Icon, Mark } from "../../ui/Icon";
import { Table } from "../../ui/Listing";
import { Time } from "../../ui/Time";
import { useToasts } from "../../ui/toasts";
import { useSubmit } from "../../ui/useSubmit";
import { SecretDialog } from "../keys/SecretDialog";
import { NameInput, NewPasswordInput, PasswordInput } from "./fields";

export default function Account() {
  useEffect(() => {
    document.title = "Account · Rillbase";
  }, []);
  return (
    <div className="account">
      <header className="page-head">
        <Link href="/" className="title" aria-label="Rillbase">
          <Mark size={22} />
        </Link>
        <h1>Account</h1>
        <div className="actions">
          <Link href="/" className="button">
            Back to the console
          </Link>
        </div>
      </header>
      <main className="column">
        <Profile />
        <Password />
        <Sessions />
        <Tokens />
      </main>
    </div>
  );
}

function Profile() {
  const user = useUser();
  const client = useQueryClient();
  const attempt = useAttempt();
  const { showMessage } = useToasts();
  const [name, setName] = useState(user.name);
  async function save() {
    await call("/api/v1/me", { method: "PATCH", body: { name } });
    await client.invalidateQueries({ queryKey: ["session"] });
    showMessage("Saved.");
  }
  return (
    <section className="card life" aria-label="Profile">
      <h2>{user.email}</h2>
      <NameInput value={name} onChange={setName} />
      {name !== user.name && (
        <div>
          <button type="button" className="button main" onClick={() => attempt(save)}>
            Save
          </button>
        </div>
      )}
    </section>
  );
}

function Password() {
  const { showMessage } = useToasts();
  const [values, setValues] = useState({ current_password: "", new_password: "" });
  const { error, submit } = useSubmit(async () => {
    await call("/api/v1/me/password", { method: "POST", body: values });
    setValues({ current_password: "", new_password: "" });
    showMessage("Password changed. All other browsers are signed out.");
  });
  return (
    <form className="card life" aria-label="Password" onSubmit={submit}>
      <h2>Password</h2>
      <PasswordInput
        label="Current password"
        value={values.current_password}
        onChange={(typed) => setValues({ ...values, current_password: typed })}
      />
      <NewPasswordInput
        label="New password"
        value={values.new_password}
        onChange={(typed) => setValues({ ...values, new_password: typed })}
      />
      <FormFoot
        error={error}
        action="Change the password"
        canSubmit={values.current_password !== "" && values.new_password !== ""}
        isMain={false}
      />
    </form>
  );
}

interface Browser {
  readonly id: string;
  readonly current: boolean;
  readonly address: string | null;
  readonly user_agent: string;
  readonly last_seen_at: string;
}

/** A list of the user's sessions or tokens, each with a button that ends it. */
function useOwn<T>(name: string) {
  const client = useQueryClient();
  const { data = [] } = useQuery({
    queryKey: ["me", name],
    queryFn: () => all<T>(`/api/v1/me/${name}`),
  });
  const again = () => client.invalidateQueries({ queryKey: ["me", name] });
  async function end(id: string) {
    await call(`/api/v1/me/${name}/${id}`, { method: "DELETE" });
    await again();
  }
  return { data, end, again };
}

function Sessions() {
  const { data, end } = useOwn<Browser>("sessions");
  const attempt = useAttempt();
  return (
    <section className="card life" aria-label="Browsers">
      <h2>Sessions</h2>
      <Table stacks heads={["Browser", "Address", "Last seen", ""]}>
        {data.map(({ id, current, address, user_agent: agent, last_seen_at: seen }) => (
          <tr key={id}>
            <td title={agent}>
              {browserOf(agent)} {current && <span className="badge good">this one</span>}
            </td>
            <td className="mono">{address ?? "–"}</td>
            <td className="soft">
              <Time at={seen} />
            </td>
            <td className="end">
              {!current && (
                <button
                  type="button"
                  className="button small"
                  onClick={() => attempt(() => end(id))}
                >
                  Sign out
                </button>
              )}
            </td>
          </tr>
        ))}
      </Table>
    </section>
  );
}

function browserOf(agent: string): string {
  const browser = /(Edg|Firefox|Chrome|Safari)/.exec(agent)?.[1]?.replace("Edg", "Edge");
  const system = /(Windows|Android|iPhone|Mac OS X|Linux)/
    .exec(agent)?.[1]
    ?.replace("Mac OS X", "macOS");
  return browser === undefined
    ? agent.slice(0, 40) || "A program"
    : `${browser}${system ? ` on ${system}` : ""}`;
}

interface Token {
  readonly id: string;
  readonly name: string;
  readonly key_id: string;
  readonly tenant: string | null;
  readonly state: string;
  readonly expires_at: string | null;
  readonly last_used_at: string | null;
}

function Tokens() {
  const { data, end, again } = useOwn<Token>("tokens");
  const attempt = useAttempt();
  const [isAdding, setAdding] = useState(false);
  const [created, setCreated] = useState<{ name: string; secret: string } | null>(null);
  async function create(name: string) {
    setCreated(await call("/api/v1/me/tokens", { method: "POST", body: { name } }));
    await again();
  }
  return (
    <section className="card life" aria-label="Personal tokens">
      <div className="section-head">
        <h2>Personal tokens</h2>
        <button type="button" className="button" onClick={() => setAdding(true)}>
          <Icon name="plus" size={14} /> New token
        </button>
      </div>
      <p className="soft">
        A token lets a script act as you, in all of your tenants. It expires after 90 days.
      </p>
      {data.length > 0 && (
        <Table stacks heads={["Name", "Token", "State", "Last used", ""]}>
          {data.map((token) => (
            <TokenRow key={token.id} token={token} onRevoke={() => attempt(() => end(token.id))} />
          ))}
        </Table>
      )}
      {isAdding && <NewToken onCreate={create} onClose={() => setAdding(false)} />}
      {created !== null && !isAdding && (
        <SecretDialog apiKey={created} onClose={() => setCreated(null)} />
      )}
    </section>
  );
}

interface TokenRowProps {
  readonly token: Token;
  readonly onRevoke: () => void;
}

function TokenRow({ token, onRevoke }: TokenRowProps) {
  const isActive = token.state === "active";
  return (
    <tr>
      <td>{token.name}</td>
      <td className="mono">{token.key_id}…</td>
      <td>
        <span className={isActive ? "badge good" : "badge"}>{token.state}</span>
      </td>
      <td className="soft">
        <Time at={token.last_used_at} />
      </td>
      <td className="end">
        {isActive && (
          <button type="button" className="button small" onClick={onRevoke}>
            Revoke
          </button>
        )}
      </td>
    </tr>
  );
}

interface NewTokenProps {
  readonly onCreate: (name: string) => Promise<void>;
  readonly onClose: () => void;
}

function NewToken({ onCreate, onClose }: NewTokenProps) {
  const [name, setName] = useState("");
  return (
    <FormDialog
      title="New personal token"
      action="Create token"
      canSubmit={name.trim() !== ""}
      onSubmit={() => onCreate(name)}
      onClose={onClose}
    >
      <Field label="Name">
        <input
          className="input"
          placeholder="Laptop"
          value={name}
          onChange={(event) => setName(event.target.value)}
        />
      </Field>
    </FormDialog>
  );
}
