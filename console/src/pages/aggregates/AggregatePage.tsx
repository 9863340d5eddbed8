/** One aggregate: its live rows, as bars and as a table. */

import { useMemo, useState } from "react";
import { useAggregate } from "rillbase/react";
import { Link } from "wouter";
import { useOne } from "../../api/list";
import { useTenant } from "../../api/tenant";
import { DropButton } from "../../shell/DropButton";
import { PageHead } from "../../shell/Shell";
import { RowBars } from "../../ui/charts/RowBars";
import { Empty, Skeleton } from "../../ui/Empty";
import { ErrorNotice } from "../../ui/ErrorNotice";
import { Select, sameText } from "../../ui/Field";
import { Icon } from "../../ui/Icon";
import { JsonEditor } from "../../ui/JsonEditor";
import { useToasts } from "../../ui/toasts";
import { useSubmit } from "../../ui/useSubmit";
import { LiveState } from "../collections/documents/GridFoot";
import { textOf } from "../collections/documents/values";
import { AggregateState, dimensionsOf } from "./Aggregates";
import { OverTime } from "./OverTime";
import type { Aggregate } from "./types";
import "./aggregates.css";

export default function AggregatePage({ name }: { readonly name: string }) {
  const { slug, may } = useTenant();
  const { data: aggregate, error } = useOne<Aggregate>(`aggregates/${name}`);
  return (
    <>
      <PageHead
        name={name}
        title={
          <>
            <Link href={`/t/${slug}/aggregates`}>Aggregates</Link>
            <Icon name="chevron" size={11} />
            <h1 className="mono cut">{name}</h1>
            {aggregate !== undefined && <AggregateState aggregate={aggregate} />}
          </>
        }
      >
        {may("developer") && (
          <DropButton list="aggregates" name={name} label="Drop the aggregate">
            This deletes its rows and events and ends its subscriptions.
          </DropButton>
        )}
      </PageHead>
      <div className="page-body">
        <div className="column wide">
          {error !== null && <ErrorNotice error={error} />}
          {aggregate === undefined && error === null && <Skeleton />}
          {aggregate !== undefined && <Followed aggregate={aggregate} />}
          {aggregate !== undefined && <Rows aggregate={aggregate} />}
          {aggregate?.source === null && may("developer") && <AddEvents aggregate={aggregate} />}
        </div>
      </div>
    </>
  );
}

/** Says of a view what it follows, and how far its rows are. */
function Followed({ aggregate }: { readonly aggregate: Aggregate }) {
  const { slug } = useTenant();
  const { source, state, error, generation, documents_read: read } = aggregate;
  if (source === null) return null;
  const building = `${(read ?? 0).toLocaleString()} documents read so far. `;
  return (
    <p className="lead">
      Follows{" "}
      <Link className="mono" href={`/t/${slug}/collections/${source.collection}`}>
        {source.collection}
      </Link>
      . {state === "building" && building}
      {generation === null ? "There are no rows yet." : `These rows are generation ${generation}.`}{" "}
      {error}
    </p>
  );
}

type Row = Readonly<Record<string, unknown>>;

type Span = "-1h" | "-24h" | "-7d" | "-90d";

const SPANS: readonly (readonly [Span, string])[] = [
  ["-1h", "the last hour"],
  ["-24h", "the last 24 hours"],
  ["-7d", "the last 7 days"],
  ["-90d", "the last 90 days"],
];
const MAX_ROWS = 200;

function Rows({ aggregate }: { readonly aggregate: Aggregate }) {
  const { client } = useTenant();
  const measures = Object.keys(aggregate.measures);
  const [groupBy, setGroupBy] = useState<readonly string[]>(aggregate.dimensions.slice(0, 1));
  const [measure, setMeasure] = useState(measures[0] ?? "");
  const [from, setFrom] = useState<Span>("-24h");
  const rows = useMemo(() => client.aggregate<Row>(aggregate.name), [client, aggregate.name]);
  const span = aggregate.time === null ? {} : { from };
  const live = useAggregate(rows, { groupBy, limit: MAX_ROWS, ...span });
  return (
    <>
      <div className="rows-tools">
        <GroupByBoxes aggregate={aggregate} groupBy={groupBy} onChange={setGroupBy} />
        <Select
          label="Measure"
          options={sameText(measures)}
          value={measure}
          onChange={setMeasure}
        />
        {aggregate.time !== null && (
          <Select label="Since" options={SPANS} value={from} onChange={setFrom} />
        )}
        <LiveState state={live.state} />
      </div>
      {aggregate.time !== null && measure !== "" && (
        <OverTime
          rows={rows}
          time={aggregate.time}
          measure={measure}
          op={aggregate.measures[measure]?.op ?? ""}
          from={from}
        />
      )}
      {live.error !== null && <ErrorNotice error={live.error} />}
      {live.isLoading && <Skeleton />}
      {!live.isLoading && live.error === null && (
        <RowTable rows={live.rows} groupBy={groupBy} measures={measures} shown={measure} />
      )}
    </>
  );
}

interface GroupByProps {
  readonly aggregate: Aggregate;
  readonly groupBy: readonly string[];
  readonly onChange: (groupBy: readonly string[]) => void;
}

function GroupByBoxes({ aggregate, groupBy, onChange }: GroupByProps) {
  const without = (removed: string) => groupBy.filter((dimension) => dimension !== removed);
  return (
    <fieldset className="checks inline">
      <legend>Rows by</legend>
      {dimensionsOf(aggregate).map((dimension) => (
        <label key={dimension} className="check">
          <input
            type="checkbox"
            checked={groupBy.includes(dimension)}
            onChange={({ target }) =>
              onChange(target.checked ? [...groupBy, dimension] : without(dimension))
            }
          />
          <span className="mono">{dimension}</span>
        </label>
      ))}
    </fieldset>
  );
}

interface RowTableProps {
  readonly rows: readonly Row[];
  readonly groupBy: readonly string[];
  readonly measures: readonly string[];
  readonly shown: string;
}

function RowTable({ rows, groupBy, measures, shown }: RowTableProps) {
  if (rows.length === 0) {
    return (
      <Empty icon="chart" title="No rows in this period">
        Add events below, from a program, or by writing to the collection that feeds it. Rows appear
        automatically.
      </Empty>
    );
  }
  return (
    <RowBars
      heads={groupBy}
      measures={measures}
      drawn={shown}
      textOf={textOf}
      rows={rows.map((row) => {
        const labels = groupBy.map((name) => textOf(row[name]));
        return { key: labels.join("\n"), labels, measures: row };
      })}
    />
  );
}

function AddEvents({ aggregate }: { readonly aggregate: Aggregate }) {
  const { client } = useTenant();
  const { say } = useToasts();
  const [text, setText] = useState(() => JSON.stringify(eventOf(aggregate), null, 2));
  const { error, submit } = useSubmit(async () => {
    const { applied } = await client.aggregate(aggregate.name).add(JSON.parse(text));
    say(`${applied} ${applied === 1 ? "event" : "events"} added.`);
  });
  return (
    <form className="card life" onSubmit={submit}>
      <div className="section-head">
        <h2>Add events</h2>
        <button type="submit" className="button">
          Add
        </button>
      </div>
      <JsonEditor label="Events" value={text} onChange={setText} onSubmit={submit} height="130px" />
      {error !== null && <ErrorNotice error={error} />}
    </form>
  );
}

/** Returns an event that the aggregate can take. */
function eventOf({ dimensions, measures }: Aggregate): Record<string, unknown> {
  const fields = Object.values(measures).flatMap(({ field }) =>
    field === undefined ? [] : [[field, 1] as const],
  );
  return {
    ...Object.fromEntries(dimensions.map((name) => [name, "example"])),
    ...Object.fromEntries(fields),
  };
}
