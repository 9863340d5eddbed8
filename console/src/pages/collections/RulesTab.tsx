/** The access rules for end users, and a way to test them as one of them. */

import { type FormEvent, useState } from "react";
import { encode } from "rillbase";
import { call, sessionHeaders } from "../../api/control";
import { failureOf } from "../../api/failure";
import { useTenant } from "../../api/tenant";
import type { AccessRules } from "../../api/types";
import { Declaration } from "../../ui/Declaration";
import { ErrorNotice } from "../../ui/ErrorNotice";
import { Icon } from "../../ui/Icon";
import { JsonEditor } from "../../ui/JsonEditor";
import type { CollectionResource } from "./CollectionPage";

const ACTIONS = ["read", "create", "update", "delete"] as const;

export function RulesTab({
  resource: { collection, change },
}: {
  readonly resource: CollectionResource;
}) {
  const { may } = useTenant();
  const rules = collection.access_rules;
  return (
    <div className="column">
      <p className="lead">
        Rules bind apps that use a publishable key, alone or with a user's token. Each is a filter,{" "}
        <code>true</code> or <code>false</code>; <code>{'{"$auth": "sub"}'}</code> stands for a
        claim of the token. Secret keys and members obey their scopes instead.
      </p>
      <Summary rules={rules} />
      <Declaration
        key={collection.version}
        label="Access rules"
        member="access_rules"
        value={rules}
        mayChange={may("developer")}
        height="260px"
        onSave={(value) => change({ access_rules: value ?? {} })}
      />
      {may("admin") && <TryAs name={collection.name} />}
    </div>
  );
}

function Summary({ rules }: { readonly rules: AccessRules }) {
  return (
    <div className="table-wrap">
      <table className="table">
        <tbody>
          {ACTIONS.map((action) => {
            const rule = rules[action] ?? false;
            const [tone, text] =
              rule === true
                ? ["warn", "everyone"]
                : rule === false
                  ? ["", "no one"]
                  : ["good", "who matches"];
            return (
              <tr key={action}>
                <th scope="row">{action}</th>
                <td>
                  <span className={`badge ${tone}`}>{text}</span>
                </td>
                <td className="mono soft">
                  {typeof rule === "object" ? JSON.stringify(rule) : ""}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

interface Seen {
  readonly items: readonly { readonly id: unknown; readonly document: Record<string, unknown> }[];
  readonly visible: number;
  readonly all: number;
}

function TryAs({ name }: { readonly name: string }) {
  const { slug } = useTenant();
  const [claims, setClaims] = useState('{"sub": "ada"}');
  const [seen, setSeen] = useState<Seen | null>(null);
  const [error, setError] = useState<unknown>(null);
  async function look(event?: FormEvent) {
    event?.preventDefault();
    setError(null);
    try {
      setSeen(await seenBy(slug, name, claims));
    } catch (thrown) {
      setSeen(null);
      setError(thrown);
    }
  }
  return (
    <form className="card try-as" onSubmit={look}>
      <div className="section-head">
        <h2>Try as this user</h2>
        <button type="submit" className="button">
          <Icon name="eye" size={14} /> Look
        </button>
      </div>
      <p className="soft">
        The claims of a token. An empty object stands for an anonymous user. Each try is in the
        audit log.
      </p>
      <JsonEditor
        label="Claims"
        value={claims}
        onChange={setClaims}
        onSubmit={look}
        height="74px"
      />
      {error !== null && <ErrorNotice error={error} />}
      {seen !== null && (
        <>
          <p role="status">
            Sees <strong className="number">{seen.visible}</strong> of{" "}
            <span className="number">{seen.all}</span> documents.
          </p>
          <ul className="seen">
            {seen.items.map(({ id, document }) => (
              <li key={JSON.stringify(encode(id))} className="mono cut">
                {JSON.stringify(encode(document))}
              </li>
            ))}
          </ul>
        </>
      )}
    </form>
  );
}

async function seenBy(slug: string, name: string, claims: string): Promise<Seen> {
  const headers = { ...sessionHeaders(slug), "Rillbase-Act-As": readClaims(claims) };
  const root = `/v1/collections/${name}`;
  const [page, visible, all] = await Promise.all([
    call<Pick<Seen, "items">>(`${root}/query`, { method: "POST", body: { limit: 5 }, headers }),
    call<{ count: number }>(`${root}/count`, { method: "POST", body: {}, headers }),
    call<{ count: number }>(`${root}/count`, {
      method: "POST",
      body: {},
      headers: sessionHeaders(slug),
    }),
  ]);
  return { items: page.items, visible: visible.count, all: all.count };
}

/** A header is ASCII: other characters are written as JSON escapes. */
function readClaims(text: string): string {
  try {
    const compact = JSON.stringify(JSON.parse(text || "{}"));
    return compact.replace(
      /[^\x20-\x7e]/g,
      (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
    );
  } catch (error) {
    throw new SyntaxError(`The claims are not JSON: ${failureOf(error).title}`);
  }
}
