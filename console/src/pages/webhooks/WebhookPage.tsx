/** One webhook and its deliveries. */

import { useState } from "react";
import { Link, useLocation } from "wouter";
import { useAttempt, useChange, useList, useOne } from "../../api/list";
import { useTenant } from "../../api/tenant";
import type { Delivery, Webhook } from "../../api/types";
import { PageHead } from "../../shell/Shell";
import { Confirm } from "../../ui/Confirm";
import { Empty } from "../../ui/Empty";
import { Icon } from "../../ui/Icon";
import { Listing, Table } from "../../ui/Listing";
import { Menu, MenuItem } from "../../ui/Menu";
import { Time } from "../../ui/Time";
import { useToasts } from "../../ui/toasts";
import { SecretDialog } from "../keys/SecretDialog";
import { WebhookState } from "./Webhooks";

const REFRESH_MS = 2_500;

export default function WebhookPage({ id }: { readonly id: string }) {
  const { slug } = useTenant();
  const { data: webhook } = useOne<Webhook>(`webhooks/${id}`, { refetchMs: REFRESH_MS });
  return (
    <>
      <PageHead
        name={webhook?.name ?? "Webhook"}
        title={
          <>
            <Link href={`/t/${slug}/webhooks`}>Webhooks</Link>
            <Icon name="chevron" size={11} />
            <h1 className="cut">{webhook?.name}</h1>
          </>
        }
      >
        {webhook !== undefined && <Actions webhook={webhook} />}
      </PageHead>
      <div className="page-body">
        <div className="column">
          {webhook !== undefined && (
            <p>
              <WebhookState webhook={webhook} /> <code>{webhook.url}</code>
              {webhook.state_reason !== null && (
                <span className="soft"> · {webhook.state_reason}</span>
              )}
            </p>
          )}
          <Deliveries id={id} />
        </div>
      </div>
    </>
  );
}

function Actions({ webhook }: { readonly webhook: Webhook }) {
  const { slug, may } = useTenant();
  const change = useChange(`webhooks/${webhook.id}`);
  const [, go] = useLocation();
  const [isDeleting, setDeleting] = useState(false);
  const [secret, setSecret] = useState<string | null>(null);
  if (!may("admin")) return null;
  return (
    <>
      <ActionMenu webhook={webhook} onSecret={setSecret} onDelete={() => setDeleting(true)} />
      {secret !== null && (
        <SecretDialog apiKey={{ name: webhook.name, secret }} onClose={() => setSecret(null)} />
      )}
      {isDeleting && (
        <Confirm
          title={`Delete ${webhook.name}?`}
          action="Delete"
          onConfirm={async () => {
            await change(`webhooks/${webhook.id}`, { method: "DELETE" });
            go(`/t/${slug}/webhooks`);
          }}
          onClose={() => setDeleting(false)}
        >
          This also deletes its deliveries. Pending deliveries are not sent.
        </Confirm>
      )}
    </>
  );
}

interface ActionMenuProps {
  readonly webhook: Webhook;
  readonly onSecret: (secret: string) => void;
  readonly onDelete: () => void;
}

function ActionMenu({ webhook, onSecret, onDelete }: ActionMenuProps) {
  const attempt = useAttempt();
  const { sendTest, verify, rotateSecret, toggle } = useActions(webhook);
  const isOff = webhook.state === "disabled";
  return (
    <>
      <button type="button" className="button" onClick={() => attempt(sendTest)}>
        Send a test
      </button>
      <Menu label="More" className="button icon" button={<Icon name="more" />}>
        {(close) => {
          const item = (action: () => unknown) => () => {
            close();
            attempt(async () => action());
          };
          return (
            <>
              <MenuItem onSelect={item(verify)}>
                <Icon name="check" size={14} /> Repeat the handshake
              </MenuItem>
              <MenuItem onSelect={item(async () => onSecret(await rotateSecret()))}>
                <Icon name="redo" size={14} /> Rotate the secret
              </MenuItem>
              <MenuItem onSelect={item(toggle)}>
                <Icon name={isOff ? "play" : "minus"} size={14} /> {isOff ? "Enable" : "Disable"}
              </MenuItem>
              <hr />
              <MenuItem danger onSelect={item(onDelete)}>
                <Icon name="trash" size={14} /> Delete
              </MenuItem>
            </>
          );
        }}
      </Menu>
    </>
  );
}

function useActions(webhook: Webhook) {
  const path = `webhooks/${webhook.id}`;
  const change = useChange(path);
  const { showMessage } = useToasts();
  const post = (action: string) =>
    change<{ secret?: string }>(`${path}:${action}`, { method: "POST", body: {} });
  async function sendTest() {
    await post("test");
    showMessage("Test event queued.");
  }
  async function verify() {
    await post("verify");
    showMessage("Handshake started.");
  }
  async function rotateSecret(): Promise<string> {
    return (await post("rotate-secret")).secret ?? "";
  }
  async function toggle() {
    const state = webhook.state === "disabled" ? "active" : "disabled";
    await change(path, { method: "PATCH", body: { state } });
    showMessage(state === "active" ? "Enabled. Handshake started." : "Disabled. Nothing is sent.");
  }
  return { sendTest, verify, rotateSecret, toggle };
}

function Deliveries({ id }: { readonly id: string }) {
  const { may } = useTenant();
  const name = `webhooks/${id}/deliveries`;
  const deliveries = useList<Delivery>(name, { refetchMs: REFRESH_MS });
  const change = useChange(name);
  const attempt = useAttempt();
  const { showMessage } = useToasts();
  const [opened, setOpened] = useState<string | null>(null);
  if (!may("admin")) return <p className="soft">Only admins can see deliveries.</p>;
  async function redeliver(delivery: Delivery) {
    await change(`${name}/${delivery.id}:redeliver`, { method: "POST", body: {} });
    showMessage("Delivery queued.");
  }
  const empty = (
    <Empty icon="webhook" title="No deliveries yet">
      Send a test, or trigger one of the webhook's events.
    </Empty>
  );
  return (
    <Listing read={deliveries} empty={empty}>
      {(items) => (
        <Table
          stacks
          heads={["Time", "Event", "State", "Attempts", "Response", ""]}
          numbers={["Attempts", "Response"]}
        >
          {items.map((delivery) => (
            <DeliveryRow
              key={delivery.id}
              delivery={delivery}
              isOpen={opened === delivery.id}
              onToggle={() => setOpened(opened === delivery.id ? null : delivery.id)}
              onRedeliver={() => attempt(() => redeliver(delivery))}
            />
          ))}
        </Table>
      )}
    </Listing>
  );
}

interface DeliveryRowProps {
  readonly delivery: Delivery;
  readonly isOpen: boolean;
  readonly onToggle: () => void;
  readonly onRedeliver: () => void;
}

function DeliveryRow({ delivery, isOpen, onToggle, onRedeliver }: DeliveryRowProps) {
  return (
    <>
      <tr>
        <td className="soft">
          <Time at={delivery.created_at} />
        </td>
        <td className="mono">{delivery.event_type}</td>
        <td>
          <span className={`badge ${toneOf(delivery.state)}`}>{delivery.state}</span>
        </td>
        <td className="number">{delivery.attempts}</td>
        <td className="number">
          {delivery.last_status ?? delivery.last_error ?? "–"}
          {delivery.last_duration_ms !== null && (
            <span className="soft"> in {delivery.last_duration_ms} ms</span>
          )}
        </td>
        <td className="end">
          <span className="actions">
            <button type="button" className="button small" onClick={onRedeliver}>
              Redeliver
            </button>
            <button
              type="button"
              className="button small icon plain"
              aria-label={`Details of ${delivery.event_type}`}
              aria-expanded={isOpen}
              onClick={onToggle}
            >
              <Icon name={isOpen ? "down" : "chevron"} size={13} />
            </button>
          </span>
        </td>
      </tr>
      {isOpen && <Details delivery={delivery} />}
    </>
  );
}

function toneOf(state: string): string {
  if (/succeed|deliver|done/.test(state)) return "good";
  return /fail/.test(state) ? "bad" : "warn";
}

function Details({ delivery }: { readonly delivery: Delivery }) {
  return (
    <tr>
      <td colSpan={6}>
        <div className="audit-details">
          <div>
            <h3 className="soft">Request</h3>
            <pre className="mono">{JSON.stringify(delivery.payload, null, 2)}</pre>
          </div>
          <div>
            <h3 className="soft">Response</h3>
            <pre className="mono">{delivery.last_answer ?? delivery.last_error ?? "–"}</pre>
          </div>
        </div>
      </td>
    </tr>
  );
}
