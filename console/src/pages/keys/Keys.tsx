/** API keys: made, shown once, rotated, revoked. */

import { useState } from "react";
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
  const keys = useList<ApiKey>("api-keys");
  const change = useChange("api-keys");
  const attempt = useAttempt();
  const { say } = useToasts();
  const [isAdding, setAdding] = useState(false);
  const [shown, setShown] = useState<NewApiKey | null>(null);
  const [revoked, setRevoked] = useState<ApiKey | null>(null);
  const add = may("developer") && (
    <button type="button" className="button main" onClick={() => setAdding(true)}>
      <Icon name="plus" size={14} /> New key
    </button>
  );
  async function rotate(key: ApiKey) {
    setShown(
      await change<NewApiKey>(`api-keys/${key.id}/rotate`, {
        method: "POST",
        body: { overlap_s: OVERLAP_S },
      }),
    );
  }
  return (
    <>
      <PageHead title="API keys">{add}</PageHead>
      <div className="page-body">
        <div className="column">
          <p className="lead">
            Secret keys are for servers and obey their scopes. Publishable keys are for browsers and
            phones: they are no secret, and access rules say what they may do.
          </p>
          <Listing
            read={keys}
            empty={
              <Empty icon="key" title="No keys yet" actions={add || undefined}>
                A program needs a key to call Rillbase. Its secret is shown once, when it is made.
              </Empty>
            }
          >
            {(items) => (
              <Table heads={["Name", "Key", "Scopes", "State", "Last used", ""]}>
                {items.map((key) => (
                  <KeyRow
                    key={key.id}
                    apiKey={key}
                    mayChange={may("developer")}
                    onRotate={() => attempt(() => rotate(key))}
                    onRevoke={() => setRevoked(key)}
                  />
                ))}
              </Table>
            )}
          </Listing>
        </div>
      </div>
      {isAdding && (
        <NewKey
          onCreate={async (body) =>
            setShown(await change<NewApiKey>("api-keys", { method: "POST", body }))
          }
          onClose={() => setAdding(false)}
        />
      )}
      {shown !== null && !isAdding && (
        <SecretDialog apiKey={shown} onClose={() => setShown(null)} />
      )}
      {revoked !== null && (
        <Confirm
          title={`Revoke ${revoked.name}?`}
          action="Revoke"
          onConfirm={async () => {
            await change(`api-keys/${revoked.id}`, { method: "DELETE" });
            say(`${revoked.name} revoked. It opens nothing any more.`);
          }}
          onClose={() => setRevoked(null)}
        >
          Within a second it is refused everywhere, and what is connected with it is cut off. This
          cannot be undone.
        </Confirm>
      )}
    </>
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
      <td className="mono">
        <span className="key-text">
          {key.kind === "publishable" ? `${(key.key ?? "").slice(0, 22)}…` : `${key.key_id}…`}
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
          <Menu
            label={`Actions of ${key.name}`}
            className="button small icon plain"
            button={<Icon name="more" />}
          >
            {(close) => (
              <>
                <MenuItem
                  onSelect={() => {
                    close();
                    onRotate();
                  }}
                >
                  <Icon name="redo" size={14} /> Rotate, both work for an hour
                </MenuItem>
                <MenuItem
                  danger
                  onSelect={() => {
                    close();
                    onRevoke();
                  }}
                >
                  <Icon name="trash" size={14} /> Revoke
                </MenuItem>
              </>
            )}
          </Menu>
        )}
      </td>
    </tr>
  );
}
