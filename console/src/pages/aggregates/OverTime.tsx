/** One measure over time, live: a bar for each bucket. */

import type { Aggregate as AggregateHandle } from "rillbase";
import { useAggregate } from "rillbase/react";
import { Bars } from "../../ui/charts/Bars";
import { amountOf } from "../../ui/charts/RowBars";
import { numberText } from "../../ui/units";
import type { Aggregate } from "./types";

const UNITS_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
/** More bars than this would be too narrow to see. */
const MAX_BARS = 96;

type Row = Readonly<Record<string, unknown>>;

interface OverTimeProps {
  readonly rows: AggregateHandle<Row>;
  readonly time: NonNullable<Aggregate["time"]>;
  readonly measure: string;
  /** The operator of the measure, such as `sum`. */
  readonly op: string;
  /** The start of the range, such as `-24h`. */
  readonly from: string;
}

export function OverTime({ rows, time, measure, op, from }: OverTimeProps) {
  const { bucket, stepMs, slots } = bucketsOf(time.bucket, from);
  const result = useAggregate(rows, {
    groupBy: [time.field],
    measures: [measure],
    from,
    bucket,
    limit: slots + 1,
  });
  return (
    <section className="card life" aria-label="Over time">
      <h2>
        {measure} <span className="soft">every {bucketText(bucket)}</span>
      </h2>
      <Bars
        label={`${measure} every ${bucketText(bucket)}`}
        points={result.rows.map((row) => ({
          at: new Date(row[time.field] as Date | string).toISOString(),
          value: amountOf(row[measure]),
        }))}
        slots={slots}
        stepMs={stepMs}
        format={numberText}
        isSum={op === "count" || op === "sum"}
      />
    </section>
  );
}

/** Returns buckets whose length is a multiple of the aggregate's, at most `MAX_BARS` of them. */
export function bucketsOf(
  own: string,
  from: string,
): { bucket: string; stepMs: number; slots: number } {
  const spanMs = lengthMs(from.slice(1));
  const times = Math.max(1, Math.ceil(spanMs / lengthMs(own) / MAX_BARS));
  const stepMs = lengthMs(own) * times;
  const bucket = `${Number.parseInt(own, 10) * times}${own.slice(-1)}`;
  return { bucket, stepMs, slots: Math.ceil(spanMs / stepMs) + 1 };
}

const UNIT_NAMES = { s: "second", m: "minute", h: "hour", d: "day" } as const;

/** Returns a length in words, as it follows "every": `15m` is `15 minutes`, and `1h` is `hour`. */
function bucketText(length: string): string {
  const amount = Number.parseInt(length, 10);
  const unit = UNIT_NAMES[length.slice(-1) as keyof typeof UNIT_NAMES];
  return amount === 1 ? unit : `${amount} ${unit}s`;
}

function lengthMs(length: string): number {
  return Number.parseInt(length, 10) * (UNITS_MS[length.slice(-1) as keyof typeof UNITS_MS] ?? 1);
}
