/** One aggregate: its live rows, as bars and as a table. */

import { useMemo, useState } from "react";
import { parse, type RowQuery } from "rillbase";
import { useAggregate } from "rillbase/react";
import { Link } from "wouter";
import { type Resource, useResource } from "../../api/resource";
import { useTenant } from "../../api/tenant";
import type { SavedQuery } from "../../api/types";
import { rowQueryOf, storedRows } from "../../saved/aggregateQuery";
import { chartOf } from "../../saved/chart";
import { SaveQuery } from "../../saved/SaveQuery";
import type { Draft } from "../../saved/useSavedQueries";
import { WithSaved } from "../../saved/WithSaved";
import { DropButton } from "../../shell/DropButton";
import { PageHead } from "../../shell/Shell";
import { ChartBuilder } from "../../ui/charts/ChartBuilder";
import { RowBars } from "../../ui/charts/RowBars";
import { Empty, Skeleton } from "../../ui/Empty";
import { ErrorNotice } from "../../ui/ErrorNotice";
import { Segments, Select, sameText } from "../../ui/Field";
import { Icon } from "../../ui/Icon";
import { JsonEditor } from "../../ui/JsonEditor";
import { useToasts } from "../../ui/toasts";
import { counted } from "../../ui/units";
import { useSubmit } from "../../ui/useSubmit";
import { LiveState } from "../collections/documents/GridFoot";
import { textOf } from "../collections/documents/values";
import { EditAggregate } from "./AggregateDialog";
import { AggregateState, dimensionsOf } from "./Aggregates";
import { bucketsOf, OverTime } from "./OverTime";
import type { Aggregate } from "./types";
import "./aggregates.css";

/** How often the state is read while the rows are being built. */
const BUILDING_MS = 1_000;

export default function AggregatePage({ name }: { readonly name: string }) {
  const { slug, may } = useTenant();
  const { resource, error } = useResource<Aggregate>("aggregates", name, ({ state }) =>
    state === "building" ? BUILDING_MS : false,
  );
  const aggregate = resource?.body;
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
        {may("developer") && resource !== null && <EditButton resource={resource} />}
        {may("developer") && (
          <DropButton list="aggregates" name={name} label="Drop the aggregate">
            This deletes its rows and events and ends its subscriptions.
          </DropButton>
        )}
      </PageHead>
      <div className="page-body">
        <div className="column">
          {error !== null && <ErrorNotice error={error} />}
          {aggregate === undefined && error === null && <Skeleton />}
          {aggregate !== undefined && <Followed aggregate={aggregate} />}
          {aggregate !== undefined && (
            <WithSaved>{(saved) => <Rows aggregate={aggregate} opened={saved} />}</WithSaved>
          )}
          {aggregate?.source === null && may("developer") && <AddEvents aggregate={aggregate} />}
        </div>
      </div>
    </>
  );
}

function EditButton({ resource }: { readonly resource: Resource<Aggregate> }) {
  const [isEditing, setEditing] = useState(false);
  return (
    <>
      <button
        type="button"
        className="button"
        aria-label="Change the aggregate"
        onClick={() => setEditing(true)}
      >
        <Icon name="edit" size={13} /> <span className="wide-only">Change</span>
      </button>
      {isEditing && <EditAggregate resource={resource} onClose={() => setEditing(false)} />}
    </>
  );
}

/** Shows which collection a view follows, and how far its rows have been built. */
function Followed({ aggregate }: { readonly aggregate: Aggregate }) {
  const { slug } = useTenant();
  const { source, state, error, generation, documents_read: read } = aggregate;
  if (source === null) return null;
  const building = `${counted(read ?? 0, "document")} read so far. `;
  return (
    <p className="lead">
      Follows{" "}
      <Link className="mono" href={`/t/${slug}/collections/${source.collection}`}>
        {source.collection}
      </Link>
      . {state === "building" && building}
      {generation === null ? "There are no rows yet." : `Generation ${generation} of the rows.`}{" "}
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
/** Rows over time: several for each bucket. */
const MAX_TIMED_ROWS = 1_000;

const VIEWS: readonly (readonly [View, string])[] = [
  ["table", "Table"],
  ["chart", "Chart"],
];

function spanOf(from: unknown): Span {
  return SPANS.find(([span]) => span === from)?.[0] ?? "-24h";
}

/** Returns the query of the rows. Those over time are added up to buckets of a length that fits. */
function rowsQuery(aggregate: Aggregate, groupBy: readonly string[], from: Span): RowQuery {
  const { time } = aggregate;
  if (time === null) return { groupBy, limit: MAX_ROWS };
  if (!groupBy.includes(time.field)) return { groupBy, limit: MAX_ROWS, from };
  return { groupBy, limit: MAX_TIMED_ROWS, from, bucket: bucketsOf(time.bucket, from).bucket };
}

interface RowsProps {
  readonly aggregate: Aggregate;
  /** The saved query that the address names. */
  readonly opened: SavedQuery | null;
}

type View = "table" | "chart";

function Rows({ aggregate, opened }: RowsProps) {
  const { client } = useTenant();
  const measures = Object.keys(aggregate.measures);
  const begun = rowQueryOf(opened?.query ?? {});
  const [groupBy, setGroupBy] = useState(begun.groupBy ?? aggregate.dimensions.slice(0, 1));
  const [measure, setMeasure] = useState(measures[0] ?? "");
  const [from, setFrom] = useState<Span>(spanOf(begun.from));
  const [chart, setChart] = useState(chartOf(opened?.chart ?? null));
  const [saved, setSaved] = useState(opened);
  const [view, setView] = useState<View>(opened === null ? "table" : "chart");
  const rows = useMemo(() => client.aggregate<Row>(aggregate.name), [client, aggregate.name]);
  const query = rowsQuery(aggregate, groupBy, from);
  const live = useAggregate(rows, query);
  const draft = (): Draft => ({
    kind: "aggregate",
    source: aggregate.name,
    query: storedRows(query),
    chart,
  });
  return (
    <>
      <div className="rows-tools">
        <GroupByBoxes aggregate={aggregate} groupBy={groupBy} onChange={setGroupBy} />
        {view === "table" && (
          <Select
            label="Measure"
            options={sameText(measures)}
            value={measure}
            onChange={setMeasure}
          />
        )}
        {aggregate.time !== null && (
          <Select label="Since" options={SPANS} value={from} onChange={setFrom} />
        )}
        <Segments label="View" options={VIEWS} value={view} onChange={setView} />
        <SaveQuery draft={draft} saved={saved} onSaved={setSaved} />
        <LiveState state={live.state} />
      </div>
      {view === "table" && aggregate.time !== null && measure !== "" && (
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
      {!live.isLoading && live.error === null && view === "chart" && (
        <div className="card">
          <ChartBuilder chart={chart} rows={live.rows} textOf={textOf} onChange={setChart} />
        </div>
      )}
      {!live.isLoading && live.error === null && view === "table" && (
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
      <legend>Group by</legend>
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
  const { showMessage } = useToasts();
  const [text, setText] = useState(() => JSON.stringify(eventOf(aggregate), null, 2));
  const { error, submit } = useSubmit(async () => {
    const { applied } = await client
      .aggregate(aggregate.name)
      .add(parse(text) as Record<string, unknown>);
    showMessage(`${counted(applied, "event")} added.`);
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
