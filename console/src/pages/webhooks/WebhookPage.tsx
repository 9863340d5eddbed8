/** One webhook and what became of its messages. */

import { Fragment, useState } from "react";
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
  const attempt = useAttempt();
  const { say } = useToasts();
  const [, go] = useLocation();
  const [isDeleting, setDeleting] = useState(false);
  const [secret, setSecret] = useState<string | null>(null);
  if (!may("admin")) return null;
  const path = `webhooks/${webhook.id}`;
  const post = (action: string) =>
    change<{ secret?: string }>(`${path}:${action}`, { method: "POST", body: {} });
  const isOff = webhook.state === "disabled";
  async function setState(state: "active" | "disabled") {
    await change(path, { method: "PATCH", body: { state } });
    say(state === "active" ? "Enabled: the handshake begins again." : "Disabled: nothing is sent.");
  }
  return (
    <>
      <button
        type="button"
        className="button"
        onClick={() => attempt(() => post("test").then(() => say("A test event is on its way.")))}
      >
        Send a test
      </button>
      <Menu label="More" className="button icon" button={<Icon name="more" />}>
        {(close) => {
          const item = (work: () => Promise<unknown>) => () => {
            close();
            attempt(work);
          };
          return (
            <>
              <MenuItem
                onSelect={item(() => post("verify").then(() => say("The handshake begins again.")))}
              >
                <Icon name="check" size={14} /> Repeat the handshake
              </MenuItem>
              <MenuItem
                onSelect={item(async () => setSecret((await post("rotate-secret")).secret ?? ""))}
              >
                <Icon name="redo" size={14} /> Rotate the secret
              </MenuItem>
              <MenuItem onSelect={item(() => setState(isOff ? "active" : "disabled"))}>
                <Icon name={isOff ? "play" : "minus"} size={14} /> {isOff ? "Enable" : "Disable"}
              </MenuItem>
              <hr />
              <MenuItem
                danger
                onSelect={() => {
                  close();
                  setDeleting(true);
                }}
              >
                <Icon name="trash" size={14} /> Delete
              </MenuItem>
            </>
          );
        }}
      </Menu>
      {secret !== null && (
        <SecretDialog apiKey={{ name: webhook.name, secret }} onClose={() => setSecret(null)} />
      )}
      {isDeleting && (
        <Confirm
          title={`Delete ${webhook.name}?`}
          action="Delete"
          onConfirm={async () => {
            await change(path, { method: "DELETE" });
            go(`/t/${slug}/webhooks`);
          }}
          onClose={() => setDeleting(false)}
        >
          Its deliveries go with it, and what waits is not sent.
        </Confirm>
      )}
    </>
  );
}

function Deliveries({ id }: { readonly id: string }) {
  const { may } = useTenant();
  const name = `webhooks/${id}/deliveries`;
  const deliveries = useList<Delivery>(name, { refetchMs: REFRESH_MS });
  const change = useChange(name);
  const attempt = useAttempt();
  const { say } = useToasts();
  const [opened, setOpened] = useState<string | null>(null);
  if (!may("admin")) return <p className="soft">Deliveries are shown to admins.</p>;
  return (
    <Listing
      read={deliveries}
      empty={
        <Empty icon="webhook" title="Nothing has been sent yet">
          Send a test, or change something that the webhook listens to.
        </Empty>
      }
    >
      {(items) => (
        <Table
          heads={["When", "Event", "State", "Attempts", "Answer", ""]}
          numbers={["Attempts", "Answer"]}
        >
          {items.map((delivery) => (
            <Fragment key={delivery.id}>
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
                <td>
                  <span className="actions">
                    <button
                      type="button"
                      className="button small"
                      onClick={() =>
                        attempt(async () => {
                          await change(`${name}/${delivery.id}:redeliver`, {
                            method: "POST",
                            body: {},
                          });
                          say("It is sent again.");
                        })
                      }
                    >
                      Redeliver
                    </button>
                    <button
                      type="button"
                      className="button small icon plain"
                      aria-label={`Details of ${delivery.event_type}`}
                      aria-expanded={opened === delivery.id}
                      onClick={() => setOpened(opened === delivery.id ? null : delivery.id)}
                    >
                      <Icon name={opened === delivery.id ? "down" : "chevron"} size={13} />
                    </button>
                  </span>
                </td>
              </tr>
              {opened === delivery.id && <Details delivery={delivery} />}
            </Fragment>
          ))}
        </Table>
      )}
    </Listing>
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
            <h3 className="soft">sent</h3>
            <pre className="mono">{JSON.stringify(delivery.payload, null, 2)}</pre>
          </div>
          <div>
            <h3 className="soft">answered</h3>
            <pre className="mono">{delivery.last_answer ?? delivery.last_error ?? "–"}</pre>
          </div>
        </div>
      </td>
    </tr>
  );
}
