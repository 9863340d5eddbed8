/** What happens in the tenant: writes, events, requests and, while the page is open, clients. */

import { useEffect, useRef, useState } from "react";
import { Link } from "wouter";
import { useTenant } from "../../api/tenant";
import type { Subscription } from "../../api/types";
import { PageHead } from "../../shell/Shell";
import { Lines, type Series } from "../../ui/charts/Lines";
import { Skeleton } from "../../ui/Empty";
import { ErrorNotice } from "../../ui/ErrorNotice";
import { rateText } from "../overview/activity";
import { LastHour } from "./LastHour";
import { LatestRequests } from "./LatestRequests";
import { REFRESH_MS, useSubscriptions } from "./useSubscriptions";
import "./activity.css";

interface Sample {
  readonly clients: number;
  readonly subscriptions: number;
  readonly queries: number;
  readonly eventsPerS: number;
  readonly median: number | null;
  readonly p99: number | null;
}

/** The number of readings in five minutes. */
const SAMPLES = 150;

export default function Activity() {
  const { slug } = useTenant();
  const { data, error, dataUpdatedAt } = useSubscriptions();
  const samples = useSamples(data, dataUpdatedAt);
  const now = samples[samples.length - 1];
  return (
    <>
      <PageHead title="Activity" />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling area must be reachable by keyboard. */}
      <div className="page-body" tabIndex={0}>
        <div className="column">
          <LastHour />
          <LatestRequests />
          {error !== null && <ErrorNotice error={error} />}
          {now === undefined && error === null && <Skeleton />}
          {now !== undefined && (
            <>
              <h2>Clients, while this page is open</h2>
              <Figures samples={samples} now={now} />
              <p className="soft">
                Servers report these figures every two seconds.{" "}
                <Link href={`/t/${slug}/subscriptions`}>Subscriptions</Link> lists the clients.
              </p>
            </>
          )}
        </div>
      </div>
    </>
  );
}

interface FiguresProps {
  readonly samples: readonly Sample[];
  readonly now: Sample;
}

function Figures({ samples, now }: FiguresProps) {
  return (
    <div className="figures">
      <Chart
        title="Connected clients"
        value={String(now.clients)}
        samples={samples}
        pick={[["clients", (s) => s.clients]]}
        format={whole}
      />
      <Chart
        title="Events sent each second"
        value={rateText(now.eventsPerS)}
        samples={samples}
        pick={[["events", (s) => s.eventsPerS]]}
        format={rateText}
      />
      <Chart
        title="From commit to client"
        value={now.median === null ? "–" : `${Math.round(now.median)} ms`}
        note={now.p99 === null ? undefined : `99 % within ${Math.round(now.p99)} ms`}
        samples={samples}
        pick={[
          ["median", (s) => s.median],
          ["99 %", (s) => s.p99],
        ]}
        format={(value) => `${Math.round(value)} ms`}
      />
      <Chart
        title="Subscriptions"
        value={String(now.subscriptions)}
        note={now.queries === 1 ? "one query" : `${now.queries} distinct queries`}
        samples={samples}
        pick={[["subscriptions", (s) => s.subscriptions]]}
        format={whole}
      />
    </div>
  );
}

const whole = (value: number) => Math.round(value).toLocaleString("en");

interface ChartProps {
  readonly title: string;
  readonly value: string;
  readonly note?: string | undefined;
  readonly samples: readonly Sample[];
  readonly pick: readonly (readonly [string, (sample: Sample) => number | null])[];
  readonly format: (value: number) => string;
}

function Chart({ title, value, note, samples, pick, format }: ChartProps) {
  const series = pick.map(([name, of]): Series => ({ name, values: samples.map(of) }));
  return (
    <figure className="card figure">
      <figcaption>
        <span className="soft">{title}</span>
        <strong className="number">{value}</strong>
        {note !== undefined && <span className="soft number">{note}</span>}
      </figcaption>
      <Lines label={title} series={series} slots={SAMPLES} stepMs={REFRESH_MS} format={format} />
    </figure>
  );
}

/** Keeps the readings of the last minutes. */
function useSamples(rows: readonly Subscription[] | undefined, readAt: number): readonly Sample[] {
  const [samples, setSamples] = useState<readonly Sample[]>([]);
  const lastMs = useRef(0);
  useEffect(() => {
    if (rows === undefined || readAt - lastMs.current < REFRESH_MS / 2) return;
    lastMs.current = readAt;
    setSamples((earlier) => [...earlier.slice(1 - SAMPLES), sampleOf(rows)]);
  }, [rows, readAt]);
  return samples;
}

function sampleOf(rows: readonly Subscription[]): Sample {
  const lags = rows
    .map(({ lag_ms: lag }) => lag)
    .filter((lag) => lag !== null)
    .sort((a, b) => a - b);
  return {
    clients: new Set(rows.map(({ connection }) => connection)).size,
    subscriptions: rows.length,
    queries: new Set(rows.map(({ query_hash: hash }) => hash)).size,
    eventsPerS: rows.reduce((sum, row) => sum + row.events_per_s, 0),
    median: quantile(lags, 0.5),
    p99: quantile(lags, 0.99),
  };
}

function quantile(sorted: readonly number[], part: number): number | null {
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? null;
}
