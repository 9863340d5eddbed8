/** The aggregates of the tenant. */

import { useState } from "react";
import { Link, useLocation } from "wouter";
import { useChange } from "../../api/list";
import { useTenant } from "../../api/tenant";
import { ListPage } from "../../shell/ListPage";
import { FormDialog } from "../../ui/Dialog";
import { JsonEditor } from "../../ui/JsonEditor";
import type { Aggregate } from "./types";

const ABOUT =
  "An aggregate keeps counts, sums and similar values up to date as events arrive, so a question about a " +
  "million events reads a few rows. Rows can be watched.";

const EXAMPLE = {
  name: "requests_5m",
  dimensions: ["app", "endpoint"],
  time: { field: "at", bucket: "5m" },
  measures: {
    count: { op: "count" },
    latency: { op: "avg", field: "latency_ms" },
  },
  rollups: [["app"]],
  retention: "90d",
};

export default function Aggregates() {
  const { slug } = useTenant();
  return (
    <ListPage<Aggregate>
      title="Aggregates"
      path="aggregates"
      action="New aggregate"
      none={{ icon: "chart", title: "No aggregates yet", about: ABOUT }}
      heads={["Name", "By", "Measures", "Fed by", "State"]}
      cells={(aggregate) => (
        <>
          <td>
            <Link className="mono" href={`/t/${slug}/aggregates/${aggregate.name}`}>
              {aggregate.name}
            </Link>
          </td>
          <td className="mono soft">{dimensionsOf(aggregate).join(", ")}</td>
          <td className="mono soft">{Object.keys(aggregate.measures).join(", ")}</td>
          <td>{aggregate.source === null ? "events" : aggregate.source.collection}</td>
          <td>
            <AggregateState aggregate={aggregate} />
          </td>
        </>
      )}
      dialog={(onClose) => <NewAggregate onClose={onClose} />}
    />
  );
}

/** Returns what rows can be grouped by. */
export function dimensionsOf({ dimensions, time }: Aggregate): string[] {
  return [...dimensions, ...(time === null ? [] : [time.field])];
}

export function AggregateState({ aggregate: { state, error } }: { readonly aggregate: Aggregate }) {
  const tone = state === "active" ? "good" : state === "failed" ? "bad" : "warn";
  return (
    <span className={`badge ${tone}`} title={error ?? ""}>
      {state}
    </span>
  );
}

function NewAggregate({ onClose }: { readonly onClose: () => void }) {
  const { slug } = useTenant();
  const change = useChange("aggregates");
  const [, go] = useLocation();
  const [text, setText] = useState(() => JSON.stringify(EXAMPLE, null, 2));
  async function create() {
    const made = await change<Aggregate>("aggregates", { method: "POST", body: JSON.parse(text) });
    go(`/t/${slug}/aggregates/${made.name}`);
  }
  return (
    <FormDialog
      title="New aggregate"
      lead="Dimensions identify rows, measures are their values. With a source, the aggregate follows a collection."
      action="Create aggregate"
      wide
      onSubmit={create}
      onClose={onClose}
    >
      <JsonEditor label="Definition" value={text} onChange={setText} height="330px" />
    </FormDialog>
  );
}
