/** The matching grid: its nodes, their queries, and their lag. */

import { useOne } from "../../api/list";
import { PageHead } from "../../shell/Shell";
import { Empty, Skeleton } from "../../ui/Empty";
import { ErrorNotice } from "../../ui/ErrorNotice";
import { size } from "../../ui/units";
import { Cluster, type ClusterState } from "./Cluster";
import "./activity.css";

interface Node {
  readonly name: string;
  readonly kind: "filter" | "sort";
  readonly query_partition: number;
  readonly write_partition: number | null;
  readonly state: string;
  /** Share of a core over the last minute. */
  readonly busy: number | null;
  readonly lag_ms: number | null;
  readonly queries: number | null;
  readonly matched: number | null;
  readonly memory_bytes: number | null;
  readonly rebuilds: number | null;
}

interface Read extends ClusterState {
  readonly grids: readonly {
    readonly epoch: number;
    readonly query_partitions: number;
    readonly write_partitions: number;
    readonly nodes: readonly Node[];
  }[];
}

const REFRESH_MS = 2_000;

export default function Grid() {
  const { data, error } = useOne<Read>("cluster", { refetchMs: REFRESH_MS });
  return (
    <>
      <PageHead title="Matching grid" />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrolling elements need the keyboard. */}
      <div className="page-body" tabIndex={0}>
        <div className="column">
          <p className="lead">
            Each write goes to one write partition, each live query to one query partition. At each
            intersection, a filter node checks whether the write changes the query's result; sort
            nodes keep sorted results and their windows in order.
          </p>
          {error !== null && <ErrorNotice error={error} />}
          {data === undefined && error === null && <Skeleton />}
          {data !== undefined && <Cluster cluster={data} />}
          {data?.grids.length === 0 && (
            <Empty icon="grid" title="No grid">
              No grid is running. Queries work; live queries are <code>stale</code> until there is a
              grid.
            </Empty>
          )}
          {data?.grids.map((grid) => (
            <section key={grid.epoch} className="life" aria-label={`Grid ${grid.epoch}`}>
              <div className="section-head">
                <h2>
                  Grid {grid.epoch}{" "}
                  <span className="soft">
                    · {partitionsText(grid.query_partitions, "query")} ×{" "}
                    {partitionsText(grid.write_partitions, "write")}
                  </span>
                </h2>
                <Health nodes={grid.nodes} />
              </div>
              <div className="nodes">
                {grid.nodes.map((node) => (
                  <NodeCard key={node.name} node={node} />
                ))}
              </div>
            </section>
          ))}
        </div>
      </div>
    </>
  );
}

function Health({ nodes }: { readonly nodes: readonly Node[] }) {
  const running = nodes.filter(({ state }) => state === "running").length;
  const tone = running === nodes.length ? "good" : running === 0 ? "bad" : "warn";
  return (
    <span className={`badge ${tone}`}>
      {running} of {nodes.length} nodes running
    </span>
  );
}

function NodeCard({ node }: { readonly node: Node }) {
  const place =
    node.kind === "sort"
      ? `query partition ${node.query_partition}`
      : `query partition ${node.query_partition}, write partition ${node.write_partition}`;
  const facts: readonly (readonly [string, string | null])[] = [
    ["Lag", node.lag_ms === null ? null : `${Math.max(0, node.lag_ms).toFixed(1)} ms`],
    ["CPU usage", node.busy === null ? null : `${(node.busy * 100).toFixed(1)} %`],
    ["Live queries", count(node.queries)],
    ["Documents matched", count(node.matched)],
    ["Query memory", node.memory_bytes === null ? null : size(node.memory_bytes)],
    ["Rebuilds", count(node.rebuilds)],
  ];
  return (
    <article className="card node">
      <header>
        <div>
          <h3>{node.kind === "sort" ? "Sort node" : "Filter node"}</h3>
          <span className="soft">{place}</span>
        </div>
        <span
          className={`badge ${node.state === "running" ? "good" : node.state === "absent" ? "bad" : "warn"}`}
        >
          {node.state}
        </span>
      </header>
      <dl className="number">
        {facts.map(
          ([name, value]) =>
            value !== null && (
              <div key={name} className="contents">
                <dt>{name}</dt>
                <dd>{value}</dd>
              </div>
            ),
        )}
      </dl>
    </article>
  );
}

function partitionsText(number: number, kind: string): string {
  return `${number} ${kind} ${number === 1 ? "partition" : "partitions"}`;
}

function count(value: number | null): string | null {
  return value === null ? null : value.toLocaleString("en");
}
