/** The tenant's usage, beside its quotas. */

import { useState } from "react";
import { useOne } from "../../api/list";
import type { Quota, UsagePoint } from "../../api/types";
import { PageHead } from "../../shell/Shell";
import { Bars } from "../../ui/charts/Bars";
import { Skeleton } from "../../ui/Empty";
import { ErrorNotice } from "../../ui/ErrorNotice";
import { Segments } from "../../ui/Field";
import { QuotaAmount, type QuotaAmountProps } from "./QuotaAmount";
import { amountOf, titleOf } from "./quotaNames";
import "./usage.css";

type Span = "hour" | "day";

const STEP_MS: Readonly<Record<Span, number>> = { hour: 3_600_000, day: 86_400_000 };
const SLOTS: Readonly<Record<Span, number>> = { hour: 48, day: 30 };

export default function Usage() {
  const [span, setSpan] = useState<Span>("hour");
  return (
    <>
      <PageHead title="Usage">
        <Segments
          label="Period"
          options={[
            ["hour", "Two days"],
            ["day", "A month"],
          ]}
          value={span}
          onChange={setSpan}
        />
      </PageHead>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrolling elements need the keyboard. */}
      <div className="page-body" tabIndex={0}>
        <div className="column">
          <Quotas />
          <History key={span} span={span} />
        </div>
      </div>
    </>
  );
}

function Quotas() {
  const { data, error } = useOne<Quota>("quota", { refetchMs: 10_000 });
  if (error !== null) return <ErrorNotice error={error} />;
  if (data === undefined) return <Skeleton rows={4} />;
  const names = Object.keys(data.limits);
  return (
    <>
      <h2>
        Quota of the plan <span className="badge accent">{data.plan}</span>
      </h2>
      <dl className="quotas">
        {names.map((name) => (
          <QuotaTile key={name} name={name} limit={data.limits[name] ?? 0} used={data.used[name]} />
        ))}
      </dl>
    </>
  );
}

function QuotaTile({ name, limit, used }: QuotaAmountProps) {
  return (
    <div className="quota">
      <dt>{titleOf(name)}</dt>
      <dd>
        {limit === 0 && !used ? (
          <span className="soft">Not included</span>
        ) : (
          <QuotaAmount name={name} limit={limit} used={used} />
        )}
      </dd>
    </div>
  );
}

interface UsageAnswer {
  readonly since: string;
  readonly until: string;
  readonly items: readonly UsagePoint[];
}

function History({ span }: { readonly span: Span }) {
  const [since] = useState(() => new Date(Date.now() - SLOTS[span] * STEP_MS[span]).toISOString());
  const query = new URLSearchParams({ granularity: span, since });
  const { data, error } = useOne<UsageAnswer>(`usage?${query}`);
  if (error !== null) return <ErrorNotice error={error} />;
  if (data === undefined) return <Skeleton rows={4} />;
  const metrics = [...new Set(data.items.map(({ metric }) => metric))].sort();
  if (metrics.length === 0) {
    return <p className="soft">No usage in this period. Figures appear within an hour.</p>;
  }
  return (
    <>
      <h2>By {span}</h2>
      <div className="histories">
        {metrics.map((metric) => (
          <figure key={metric} className="card">
            <figcaption>{titleOf(metric)}</figcaption>
            <Bars
              label={titleOf(metric)}
              slots={SLOTS[span]}
              stepMs={STEP_MS[span]}
              points={data.items
                .filter((point) => point.metric === metric)
                .map(({ at, amount }) => ({ at, value: amount }))}
              format={(value) => amountOf(metric, value)}
            />
          </figure>
        ))}
      </div>
    </>
  );
}
