/** The current subscriptions, with rate and lag, and a button to end one. */

import { Fragment, useState } from "react";
import type { Group, Lookup } from "rillbase";
import { Link } from "wouter";
import { useChange } from "../../api/list";
import { useTenant } from "../../api/tenant";
import type { Subscription } from "../../api/types";
import { PageHead } from "../../shell/Shell";
import { Confirm } from "../../ui/Confirm";
import { Empty } from "../../ui/Empty";
import { Icon } from "../../ui/Icon";
import { Listing, Table } from "../../ui/Listing";
import { duration } from "../../ui/Time";
import { useToasts } from "../../ui/toasts";
import { counted, size } from "../../ui/units";
import { useSubscriptions } from "./useSubscriptions";
import { Why } from "./Why";
import "./activity.css";

const ABOUT = ["Query", "User", "State"];
const FIGURES = ["Age", "Events", "Rate", "Lag"];

export default function Subscriptions() {
  const [text, setText] = useState("");
  const [ended, setEnded] = useState<Subscription | null>(null);
  return (
    <>
      <PageHead title="Subscriptions">
        <input
          className="input small"
          type="search"
          aria-label="Find subscriptions"
          placeholder="User, collection, query…"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      </PageHead>
      <div className="page-body">
        <div className="column">
          <SubscriptionList text={text} onEnd={setEnded} />
        </div>
      </div>
      {ended !== null && <EndDialog subscription={ended} onClose={() => setEnded(null)} />}
    </>
  );
}

interface SubscriptionListProps {
  readonly text: string;
  readonly onEnd: (row: Subscription) => void;
}

function SubscriptionList({ text, onEnd }: SubscriptionListProps) {
  const { slug } = useTenant();
  const subscriptions = useSubscriptions();
  const [opened, setOpened] = useState<string | null>(null);
  const playground = (
    <Link className="button" href={`/t/${slug}/playground`}>
      Run a live query in the playground
    </Link>
  );
  const empty = (
    <Empty icon="signal" title="No subscriptions" actions={playground}>
      Each subscription appears here with its rate of events and its client's lag.
    </Empty>
  );
  return (
    <Listing read={subscriptions} empty={empty}>
      {(items) => (
        <Table stacks heads={[...ABOUT, ...FIGURES, ""]} numbers={FIGURES}>
          {items
            .filter((row) => matches(row, text))
            .map((row) => (
              <Row
                key={row.id}
                row={row}
                isOpen={opened === row.id}
                onToggle={() => setOpened(opened === row.id ? null : row.id)}
                onEnd={() => onEnd(row)}
              />
            ))}
        </Table>
      )}
    </Listing>
  );
}

interface EndDialogProps {
  readonly subscription: Subscription;
  readonly onClose: () => void;
}

function EndDialog({ subscription: { id, user }, onClose }: EndDialogProps) {
  const change = useChange("subscriptions");
  const { showMessage } = useToasts();
  return (
    <Confirm
      title="End this subscription?"
      action="End subscription"
      onConfirm={async () => {
        await change(`subscriptions/${encodeURIComponent(id)}`, { method: "DELETE" });
        showMessage(`Subscription of ${user} ended.`);
      }}
      onClose={onClose}
    >
      The client of <strong>{user}</strong> is notified. It can subscribe again; to prevent that,
      revoke its key.
    </Confirm>
  );
}

function matches(row: Subscription, text: string): boolean {
  const words = text.trim().toLowerCase();
  return (
    words === "" ||
    JSON.stringify([row.user, row.collection, row.topic, row.query]).toLowerCase().includes(words)
  );
}

const TONES = { live: "good", starting: "warn", stale: "bad" } as const;

interface RowProps {
  readonly row: Subscription;
  readonly isOpen: boolean;
  readonly onToggle: () => void;
  readonly onEnd: () => void;
}

function Row({ row, isOpen, onToggle, onEnd }: RowProps) {
  const { may } = useTenant();
  return (
    <Fragment>
      <tr>
        <td>
          <button
            type="button"
            className="button small icon plain"
            aria-expanded={isOpen}
            aria-label="Details"
            onClick={onToggle}
          >
            <Icon name={isOpen ? "down" : "chevron"} size={12} />
          </button>{" "}
          <strong className="mono">{row.collection ?? row.topic ?? row.aggregate ?? "–"}</strong>{" "}
          <span className="mono soft">{summary(row)}</span>
        </td>
        <td className="cut">{row.user}</td>
        <td>
          <span className={`badge ${TONES[row.state]}`}>{row.state}</span>
        </td>
        <td className="number">{duration(row.age_s)}</td>
        <td className="number">{row.events.toLocaleString("en")}</td>
        <td className="number">{row.events_per_s.toFixed(1)}/s</td>
        <td className="number">{row.lag_ms === null ? "–" : `${Math.round(row.lag_ms)} ms`}</td>
        <td className="end">
          {may("developer") && (
            <button type="button" className="button small danger" onClick={onEnd}>
              End
            </button>
          )}
        </td>
      </tr>
      {isOpen && (
        <tr>
          <td colSpan={8}>
            <Details row={row} />
            <Why row={row} />
          </td>
        </tr>
      )}
    </Fragment>
  );
}

const MAX_SUMMARY = 70;

function summary({ query }: Subscription): string {
  const { filter, group, lookup, sort, limit } = query as Watched;
  const parts = [
    ...(filter === undefined || Object.keys(filter).length === 0 ? [] : [JSON.stringify(filter)]),
    ...(group == null ? [] : [`grouped by ${group.by?.join(", ") || "nothing"}`]),
    ...(lookup == null
      ? []
      : [`with ${lookup.map(({ from, local }) => `${from} by ${local}`).join(", ")}`]),
    ...windowText(sort ?? [], limit),
  ];
  const text = parts.join(" ");
  return text.length > MAX_SUMMARY ? `${text.slice(0, MAX_SUMMARY)}…` : text;
}

function windowText(sort: NonNullable<Watched["sort"]>, limit: Watched["limit"]): string[] {
  const fields = sort.map(([field, order]) => (order < 0 ? `-${field}` : field));
  const parts = [
    ...(fields.length === 0 ? [] : [`sorted by ${fields.join(", ")}`]),
    ...(limit == null ? [] : [`limit ${limit}`]),
  ];
  return parts.length === 0 ? [] : [parts.join(", ")];
}

/** The members of a query besides its collection. */
interface Watched {
  readonly filter?: object;
  readonly group?: Partial<Group> | null;
  readonly lookup?: readonly Lookup[] | null;
  readonly sort?: readonly (readonly [string, number])[] | null;
  readonly limit?: number | null;
}

function Details({ row }: { readonly row: Subscription }) {
  const facts: readonly (readonly [string, string])[] = [
    ["Connection", row.connection],
    ["Name", row.name],
    ["Acts as", row.principal],
    ["Query hash", row.query_hash.slice(0, 16)],
    ["Waiting", `${counted(row.waiting, "event")}, ${size(row.waiting_bytes)}`],
    ["Result size", size(row.result_bytes)],
  ];
  return (
    <div className="audit-details">
      <div>
        <h2 className="soft">Query, including the access rule</h2>
        <pre className="mono">{JSON.stringify(row.query, null, 2)}</pre>
      </div>
      <dl className="facts">
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd className="mono">{value}</dd>
          </div>
        ))}
        <div>
          <dt>Why it is {row.state}</dt>
          <dd>{WHY[row.state]}</dd>
        </div>
      </dl>
    </div>
  );
}

const WHY = {
  live: "All nodes of the grid that match this query are running. Without events, nothing has changed.",
  starting: "Not all nodes have registered the query yet. The client already has its result.",
  stale:
    "A node is unavailable or lags behind. The client's result may be outdated until it has caught up.",
} as const;
