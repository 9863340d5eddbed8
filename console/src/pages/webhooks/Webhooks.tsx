/** Webhooks: URLs that are notified of changes. */

import { useState } from "react";
import { Link, useLocation } from "wouter";
import { useChange, useList } from "../../api/list";
import { useTenant } from "../../api/tenant";
import type { Webhook } from "../../api/types";
import { PageHead } from "../../shell/Shell";
import { FormDialog } from "../../ui/Dialog";
import { Empty } from "../../ui/Empty";
import { Field } from "../../ui/Field";
import { Icon } from "../../ui/Icon";
import { Listing, Table } from "../../ui/Listing";
import { SecretDialog } from "../keys/SecretDialog";

interface NewWebhook extends Webhook {
  readonly secret: string | null;
}

export default function Webhooks() {
  const { slug, may } = useTenant();
  const webhooks = useList<Webhook>("webhooks");
  const change = useChange("webhooks");
  const [, go] = useLocation();
  const [isAdding, setAdding] = useState(false);
  const [made, setMade] = useState<NewWebhook | null>(null);
  const add = may("admin") && (
    <button type="button" className="button main" onClick={() => setAdding(true)}>
      <Icon name="plus" size={14} /> New webhook
    </button>
  );
  return (
    <>
      <PageHead title="Webhooks">{add}</PageHead>
      <div className="page-body">
        <div className="column">
          <Listing
            read={webhooks}
            empty={
              <Empty icon="webhook" title="No webhooks yet" actions={add || undefined}>
                A webhook sends events to a URL of yours, such as a new key, a new member or a match
                of a topic's subscription. Deliveries are signed, and retried if they fail.
              </Empty>
            }
          >
            {(items) => (
              <Table stacks heads={["Name", "URL", "Events", "State"]}>
                {items.map((webhook) => (
                  <tr key={webhook.id}>
                    <td>
                      <Link href={`/t/${slug}/webhooks/${webhook.id}`}>{webhook.name}</Link>
                    </td>
                    <td className="mono cut">{webhook.url}</td>
                    <td className="mono soft">{eventsText(webhook.events)}</td>
                    <td>
                      <WebhookState webhook={webhook} />
                    </td>
                  </tr>
                ))}
              </Table>
            )}
          </Listing>
        </div>
      </div>
      {isAdding && (
        <NewWebhookDialog
          onCreate={async (body) =>
            setMade(await change<NewWebhook>("webhooks", { method: "POST", body }))
          }
          onClose={() => setAdding(false)}
        />
      )}
      {made !== null && !isAdding && (
        <SecretDialog apiKey={made} onClose={() => go(`/t/${slug}/webhooks/${made.id}`)} />
      )}
    </>
  );
}

export function WebhookState({
  webhook: { state, state_reason: reason, failing_since: since },
}: {
  readonly webhook: Webhook;
}) {
  if (state === "active" && since !== null) return <span className="badge bad">failing</span>;
  const tone = { active: "good", pending: "warn", disabled: "" }[state];
  return (
    <span className={`badge ${tone}`} title={reason ?? ""}>
      {state}
    </span>
  );
}

interface DialogProps {
  readonly onCreate: (body: object) => Promise<void>;
  readonly onClose: () => void;
}

function NewWebhookDialog({ onCreate, onClose }: DialogProps) {
  const [name, setName] = useState("");
  const [url, setUrl] = useState("");
  const [events, setEvents] = useState("*");
  return (
    <FormDialog
      title="New webhook"
      lead="The URL is verified first: it has to return the challenge that Rillbase sends."
      action="Create webhook"
      canSubmit={name !== "" && url !== ""}
      onSubmit={() => onCreate({ name, url, events: events.split(/[\s,]+/).filter(Boolean) })}
      onClose={onClose}
    >
      <Field label="Name">
        <input className="input" value={name} onChange={(event) => setName(event.target.value)} />
      </Field>
      <Field
        label="URL"
        hint="A public https URL. Development installations also accept loopback addresses."
      >
        <input
          className="input mono"
          placeholder="https://hooks.example.com/rillbase"
          value={url}
          onChange={(event) => setUrl(event.target.value)}
        />
      </Field>
      <Field
        label="Events"
        hint="Event types such as api_key.created, a prefix such as api_key.*, or * for all events."
      >
        <input
          className="input mono"
          value={events}
          onChange={(event) => setEvents(event.target.value)}
        />
      </Field>
    </FormDialog>
  );
}

function eventsText(events: readonly string[]): string {
  return events.includes("*") ? "all" : events.join(", ");
}
