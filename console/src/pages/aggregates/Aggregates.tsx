/** The aggregates of the tenant. */

import { Link } from "wouter";
import { useTenant } from "../../api/tenant";
import { ListPage } from "../../shell/ListPage";
import { NewAggregate } from "./AggregateDialog";
import type { Aggregate } from "./types";

const ABOUT =
  "An aggregate keeps counts, sums and similar values up to date as events arrive, so a query over a " +
  "million events reads a few rows. You can subscribe to the rows.";

export default function Aggregates() {
  const { slug } = useTenant();
  return (
    <ListPage<Aggregate>
      title="Aggregates"
      path="aggregates"
      action="New aggregate"
      none={{ icon: "chart", title: "No aggregates yet", about: ABOUT }}
      heads={["Name", "Dimensions", "Measures", "Source", "State"]}
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
