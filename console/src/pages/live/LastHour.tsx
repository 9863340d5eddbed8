/** Writes and events of the last hour, or what to do if there are none. */

import { Link } from "wouter";
import { useOne } from "../../api/list";
import { useTenant } from "../../api/tenant";
import type { Overview } from "../../api/types";
import { Bars } from "../../ui/charts/Bars";
import { Skeleton } from "../../ui/Empty";
import { ErrorNotice } from "../../ui/ErrorNotice";
import { numberText } from "../../ui/units";
import { MINUTES } from "../overview/activity";

const MINUTE_MS = 60_000;
/** Servers report writes and events within half a minute. */
const REFRESH_MS = 15_000;
const FIGURES = [
  ["writes", "Documents written each minute"],
  ["events", "Events sent each minute"],
] as const;

export function LastHour() {
  const { data, error } = useOne<Overview>("overview", { refetchMs: REFRESH_MS });
  if (error !== null) return <ErrorNotice error={error} />;
  if (data === undefined) return <Skeleton />;
  return (
    <>
      {data.activity.length === 0 && <Quiet />}
      <h2>Last hour</h2>
      <div className="figures">
        {FIGURES.map(([figure, title]) => (
          <figure key={figure} className="card figure">
            <figcaption>
              <span className="soft">{title}</span>
              <strong className="number">
                {numberText(data.activity.reduce((sum, minute) => sum + minute[figure], 0))}
              </strong>
              <span className="soft">in total</span>
            </figcaption>
            <Bars
              label={title}
              points={data.activity.map((minute) => ({ at: minute.at, value: minute[figure] }))}
              slots={MINUTES}
              stepMs={MINUTE_MS}
              format={numberText}
            />
          </figure>
        ))}
      </div>
    </>
  );
}

function Quiet() {
  const { slug } = useTenant();
  return (
    <div className="card quiet">
      <p>
        <strong>Nothing was written or sent in the last hour.</strong>{" "}
        <span className="soft">
          Run a live query and change a document: both appear here within half a minute.
        </span>
      </p>
      <Link className="button main" href={`/t/${slug}/playground`}>
        Open the playground
      </Link>
    </div>
  );
}
