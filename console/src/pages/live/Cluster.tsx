/**
 * The tenant's dedicated grid: its state and the reason, and how to request, change and remove it.
 */

import { useState } from "react";
import { useChange, useOne } from "../../api/list";
import { useTenant } from "../../api/tenant";
import type { Quota } from "../../api/types";
import { Confirm } from "../../ui/Confirm";
import { FormDialog } from "../../ui/Dialog";
import { Field, Select, sameText } from "../../ui/Field";
import { Icon, type IconName } from "../../ui/Icon";
import { duration, Time } from "../../ui/Time";

export interface Condition {
  readonly type: string;
  readonly status: "True" | "False" | "Unknown";
  readonly reason: string;
  readonly message: string;
  readonly last_transition_at: string;
}

interface Proposal {
  readonly write_partitions: number;
  readonly query_partitions: number;
  readonly message: string;
}

export interface Wanted {
  readonly write_partitions: number | null;
  readonly query_partitions: number | null;
  readonly node_size: string | null;
  readonly tier: string | null;
  readonly image: string | null;
  readonly idle_after_s: number | null;
}

export interface ClusterState extends Wanted {
  readonly launcher: "shared" | "kubernetes";
  readonly state: string;
  readonly proposal: Proposal | null;
  readonly conditions: readonly Condition[];
  readonly version: number | null;
}

const TONES: Readonly<Record<string, string>> = {
  running: "good",
  failing: "bad",
  idle: "",
  shared: "",
};

export function Cluster({ cluster }: { readonly cluster: ClusterState }) {
  return cluster.launcher === "shared" ? <Shared /> : <Own cluster={cluster} />;
}

/** The limit of a plan that includes a dedicated grid. */
const LIMIT = "cluster_write_partitions";

function Shared() {
  const { may } = useTenant();
  const { data: quota } = useOne<Quota>("quota");
  const isIncluded = (quota?.limits[LIMIT] ?? 0) > 0;
  const [isAsking, setAsking] = useState(false);
  return (
    <section className="card cluster-shared" aria-label="Cluster">
      <p className="grow soft">
        All tenants share the grid that matches your live queries. A dedicated grid runs in a
        separate namespace, on nodes that no other tenant uses.
        {quota !== undefined && !isIncluded && ` Your plan (${quota.plan}) does not include one.`}
      </p>
      {may("admin") && isIncluded && (
        <button type="button" className="button" onClick={() => setAsking(true)}>
          Create a dedicated grid
        </button>
      )}
      {isAsking && <SizeDialog cluster={null} onClose={() => setAsking(false)} />}
    </section>
  );
}

type Opened = "change" | "delete" | null;

function Own({ cluster }: { readonly cluster: ClusterState }) {
  const { may } = useTenant();
  const change = useChange("cluster");
  const [opened, setOpened] = useState<Opened>(null);
  const close = () => setOpened(null);
  return (
    <section className="card life" aria-label="Cluster">
      <div className="section-head">
        <h2>
          Dedicated grid{" "}
          <span className={`badge ${TONES[cluster.state] ?? "warn"}`}>{cluster.state}</span>
        </h2>
        {may("admin") && cluster.state !== "deleting" && (
          <div className="actions">
            <button type="button" className="button small" onClick={() => setOpened("change")}>
              Change
            </button>{" "}
            <button
              type="button"
              className="button small danger"
              onClick={() => setOpened("delete")}
            >
              Delete
            </button>
          </div>
        )}
      </div>
      <Facts cluster={cluster} />
      {cluster.proposal && <Proposed proposal={cluster.proposal} version={cluster.version} />}
      <Conditions conditions={cluster.conditions} />
      {opened === "change" && <SizeDialog cluster={cluster} onClose={close} />}
      {opened === "delete" && (
        <Confirm
          title="Delete the dedicated grid?"
          action="Delete"
          onConfirm={() => change("cluster", { method: "DELETE" })}
          onClose={close}
        >
          The shared grid takes over first, so live queries continue. Then the cluster and
          everything in it is removed.
        </Confirm>
      )}
    </section>
  );
}

function Facts({ cluster }: { readonly cluster: ClusterState }) {
  const { node_size, tier, image, idle_after_s: idle } = cluster;
  const facts: readonly (readonly [string, string])[] = [
    ["Query × write partitions", `${cluster.query_partitions} × ${cluster.write_partitions}`],
    ["Nodes", `${node_size}, ${tier}`],
    ["Image", image ?? "default of the installation"],
    ["Without live queries", idle === null ? "keeps running" : `stops after ${duration(idle)}`],
  ];
  return (
    <dl className="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

interface ProposedProps {
  readonly proposal: Proposal;
  readonly version: number | null;
}

/** Another size that would suit the load of the nodes better. */
function Proposed({ proposal, version }: ProposedProps) {
  const { may } = useTenant();
  const change = useChange("cluster");
  const [isAsking, setAsking] = useState(false);
  const { query_partitions, write_partitions, message } = proposal;
  const size = `${query_partitions} × ${write_partitions}`;
  const body = { query_partitions, write_partitions };
  const headers = { "If-Match": `"v${version}"` };
  return (
    <div className="notice proposal">
      <span className="grow">
        {message} <strong>{size} partitions</strong> would fit this load.
      </span>
      {may("admin") && (
        <button type="button" className="button small" onClick={() => setAsking(true)}>
          Resize
        </button>
      )}
      {isAsking && (
        <Confirm
          title={`Resize the grid to ${size} partitions?`}
          action="Resize"
          onConfirm={() => change("cluster", { method: "PATCH", body, headers })}
          onClose={() => setAsking(false)}
        >
          A second grid starts beside the current one and takes over once all its nodes are ready.
        </Confirm>
      )}
    </div>
  );
}

/** A condition that is not met is no fault while the cluster is asleep or starting. */
function markOf({ status, reason }: Condition): readonly [string, IconName] {
  if (status === "True") return ["good", "check"];
  if (status === "Unknown") return ["warn", "alert"];
  if (reason === "Asleep") return ["", "moon"];
  return reason === "Starting" ? ["warn", "redo"] : ["bad", "close"];
}

function Conditions({ conditions }: { readonly conditions: readonly Condition[] }) {
  if (conditions.length === 0) return <p className="soft">Not reconciled yet.</p>;
  return (
    <ul className="conditions" aria-label="Conditions">
      {conditions.map((condition) => {
        const { type, status, reason, message, last_transition_at: since } = condition;
        const [tone, icon] = markOf(condition);
        return (
          <li key={type}>
            <span className={`badge ${tone}`} title={status}>
              <Icon name={icon} size={12} /> {type}
            </span>
            <span className="grow">
              <strong>{reason}</strong> <span className="soft">{message}</span>
            </span>
            <span className="soft">
              <Time at={since} />
            </span>
          </li>
        );
      })}
    </ul>
  );
}

const SIZES = ["small", "medium", "large"];
const TIERS = [
  ["burstable", "burstable: uses idle resources of the node"],
  ["guaranteed", "guaranteed: reserved resources"],
] as const;
const USUAL: Wanted = {
  write_partitions: 2,
  query_partitions: 1,
  node_size: "small",
  tier: "burstable",
  image: null,
  idle_after_s: 1_800,
};

interface SizeDialogProps {
  /** The grid to change; null creates one. */
  readonly cluster: ClusterState | null;
  readonly onClose: () => void;
}

function SizeDialog({ cluster, onClose }: SizeDialogProps) {
  const change = useChange("cluster");
  // A change made by someone else since the dialog opened is not overwritten.
  const [version] = useState(cluster?.version);
  const [size, setSize] = useState<Wanted>(() => membersOf(cluster ?? USUAL));
  const set = (members: Partial<Wanted>) => setSize({ ...size, ...members });
  async function send() {
    if (cluster === null) {
      await change("cluster", { method: "POST", body: size });
      return;
    }
    const headers = { "If-Match": `"v${version}"` };
    await change("cluster", { method: "PATCH", body: size, headers });
  }
  return (
    <FormDialog
      title={cluster === null ? "Create a dedicated grid" : "Change the grid"}
      lead="The new grid takes about a minute to start. Until then, the current grid serves queries."
      action={cluster === null ? "Create" : "Change"}
      onSubmit={send}
      onClose={onClose}
    >
      <Partitions
        of="Write"
        hint="The number of streams across which your writes are divided."
        value={size.write_partitions}
        onChange={(write_partitions) => set({ write_partitions })}
      />
      <Partitions
        of="Query"
        hint="The number of partitions across which your live queries are divided."
        value={size.query_partitions}
        onChange={(query_partitions) => set({ query_partitions })}
      />
      <Field label="Node size">
        <Select
          options={sameText(SIZES)}
          value={size.node_size ?? ""}
          onChange={(node_size) => set({ node_size })}
        />
      </Field>
      <Field label="Node type">
        <Select options={TIERS} value={size.tier ?? ""} onChange={(tier) => set({ tier })} />
      </Field>
      <IdleField seconds={size.idle_after_s} onChange={(idle_after_s) => set({ idle_after_s })} />
    </FormDialog>
  );
}

interface IdleFieldProps {
  readonly seconds: number | null;
  readonly onChange: (seconds: number | null) => void;
}

function IdleField({ seconds, onChange }: IdleFieldProps) {
  return (
    <Field
      label="Stop after this many minutes without a live query"
      hint="Leave empty to keep it running."
    >
      <input
        className="input number"
        type="number"
        min={1}
        value={seconds === null ? "" : seconds / 60}
        onChange={({ target: { value } }) =>
          onChange(value === "" ? null : Math.round(+value * 60))
        }
      />
    </Field>
  );
}

interface PartitionsProps {
  readonly of: "Write" | "Query";
  readonly hint: string;
  readonly value: number | null;
  readonly onChange: (value: number) => void;
}

/** One dimension of the grid's size. */
function Partitions({ of, hint, value, onChange }: PartitionsProps) {
  return (
    <Field label={`${of} partitions`} hint={hint}>
      <input
        className="input number"
        type="number"
        min={1}
        max={64}
        value={value ?? ""}
        onChange={(event) => onChange(Number(event.target.value))}
      />
    </Field>
  );
}

function membersOf({ node_size, tier, image, idle_after_s, ...size }: Wanted): Wanted {
  const { write_partitions, query_partitions } = size;
  return { write_partitions, query_partitions, node_size, tier, image, idle_after_s };
}
