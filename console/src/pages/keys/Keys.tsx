/** API keys: create, show once, rotate, revoke. */

import { type ReactNode, useState } from "react";
import { useAttempt, useChange, useList } from "../../api/list";
import { useTenant } from "../../api/tenant";
import type { ApiKey, NewApiKey } from "../../api/types";
import { PageHead } from "../../shell/Shell";
import { CopyButton } from "../../ui/Code";
import { Confirm } from "../../ui/Confirm";
import { Empty } from "../../ui/Empty";
import { Icon } from "../../ui/Icon";
import { Listing, Table } from "../../ui/Listing";
import { Menu, MenuItem } from "../../ui/Menu";
import { Time } from "../../ui/Time";
import { useToasts } from "../../ui/toasts";
import { NewKey } from "./NewKey";
import { SecretDialog } from "./SecretDialog";

const OVERLAP_S = 3_600;

export default function Keys() {
  const { may } = useTenant();
  const change = useChange("api-keys");
  const attempt = useAttempt();
  const [isAdding, setAdding] = useState(false);
  const [shown, setShown] = useState<NewApiKey | null>(null);
  const [revoked, setRevoked] = useState<ApiKey | null>(null);
  const add = may("developer") && (
    <button type="button" className="button main" onClick={() => setAdding(true)}>
      <Icon name="plus" size={14} /> New key
    </button>
  );
  const post = async (path: string, body: object) =>
    setShown(await change<NewApiKey>(path, { method: "POST", body }));
  const rotate = (key: ApiKey) => post(`api-keys/${key.id}/rotate`, { overlap_s: OVERLAP_S });
  return (
    <>
      <PageHead title="API keys">{add}</PageHead>
      <div className="page-body">
        <div className="column">
          <p className="lead">
            Secret keys are for servers and have scopes. Publishable keys are for browsers and
            phones: they are not secret, and access rules determine what they may do.
          </p>
          <KeyList
            add={add || undefined}
            onRotate={(key) => attempt(() => rotate(key))}
            onRevoke={setRevoked}
          />
        </div>
      </div>
      {isAdding && (
        <NewKey onCreate={(body) => post("api-keys", body)} onClose={() => setAdding(false)} />
      )}
      {shown !== null && !isAdding && (
        <SecretDialog apiKey={shown} onClose={() => setShown(null)} />
      )}
      {revoked !== null && <RevokeDialog apiKey={revoked} onClose={() => setRevoked(null)} />}
    </>
  );
}

interface KeyListProps {
  readonly add: ReactNode;
  readonly onRotate: (key: ApiKey) => void;
  readonly onRevoke: (key: ApiKey) => void;
}

function KeyList({ add, onRotate, onRevoke }: KeyListProps) {
  const { may } = useTenant();
  const keys = useList<ApiKey>("api-keys");
  const empty = (
    <Empty icon="key" title="No keys yet" actions={add}>
      Programs call Rillbase with a key. The secret is shown only once, when you create the key.
    </Empty>
  );
  return (
    <Listing read={keys} empty={empty}>
      {(items) => (
        <Table stacks heads={["Name", "Kind", "Key", "Scopes", "State", "Last used", ""]}>
          {items.map((key) => (
            <KeyRow
              key={key.id}
              apiKey={key}
              mayChange={may("developer")}
              onRotate={() => onRotate(key)}
              onRevoke={() => onRevoke(key)}
            />
          ))}
        </Table>
      )}
    </Listing>
  );
}

interface RevokeProps {
  readonly apiKey: ApiKey;
  readonly onClose: () => void;
}

function RevokeDialog({ apiKey: { id, name }, onClose }: RevokeProps) {
  const change = useChange("api-keys");
  const { showMessage } = useToasts();
  return (
    <Confirm
      title={`Revoke ${name}?`}
      action="Revoke"
      onConfirm={async () => {
        await change(`api-keys/${id}`, { method: "DELETE" });
        showMessage(`${name} revoked.`);
      }}
      onClose={onClose}
    >
      Within a second, requests with this key are rejected and its connections are closed. This
      cannot be undone.
    </Confirm>
  );
}

interface RowProps {
  readonly apiKey: ApiKey;
  readonly mayChange: boolean;
  readonly onRotate: () => void;
  readonly onRevoke: () => void;
}

const MAX_SCOPES = 3;

function KeyRow({ apiKey: key, mayChange, onRotate, onRevoke }: RowProps) {
  const more = key.scopes.length - MAX_SCOPES;
  const isActive = key.state === "active";
  return (
    <tr>
      <td>
        <strong>{key.name}</strong>
      </td>
      <td>{key.kind}</td>
      <td className="mono">
        <span className="key-text">
          {key.kind === "publishable" ? `${(key.key ?? "").slice(0, 22)}…` : `rbk_…${key.key_id}…`}
          {key.key !== null && <CopyButton text={key.key} label={`Copy ${key.name}`} />}
        </span>
      </td>
      <td title={key.scopes.join("\n")}>
        <span className="badges">
          {key.scopes.slice(0, MAX_SCOPES).map((scope) => (
            <span className="badge" key={scope}>
              {scope}
            </span>
          ))}
          {more > 0 && <span className="badge">+{more}</span>}
        </span>
      </td>
      <td>
        <span className={`badge ${isActive ? "good" : ""}`}>{key.state}</span>
      </td>
      <td className="soft">
        <Time at={key.last_used_at} />
      </td>
      <td className="end">
        {mayChange && isActive && (
          <KeyMenu name={key.name} onRotate={onRotate} onRevoke={onRevoke} />
        )}
      </td>
    </tr>
  );
}

interface KeyMenuProps {
  readonly name: string;
  readonly onRotate: () => void;
  readonly onRevoke: () => void;
}

function KeyMenu({ name, onRotate, onRevoke }: KeyMenuProps) {
  const label = `Actions of ${name}`;
  return (
    <Menu label={label} className="button small icon plain" button={<Icon name="more" />}>
      {(close) => {
        const choose = (action: () => void) => () => {
          close();
          action();
        };
        return (
          <>
            <MenuItem onSelect={choose(onRotate)}>
              <Icon name="redo" size={14} /> Rotate (both work for an hour)
            </MenuItem>
            <MenuItem danger onSelect={choose(onRevoke)}>
              <Icon name="trash" size={14} /> Revoke
            </MenuItem>
          </>
        );
      }}
    </Menu>
  );
}
