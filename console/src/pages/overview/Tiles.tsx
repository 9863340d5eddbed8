/** The figures at the top: writes, events, connections and errors. */

import type { ReactNode } from "react";
import { Link } from "wouter";
import { useTenant } from "../../api/tenant";
import type { Overview } from "../../api/types";
import { Sparkline } from "../../ui/charts/Sparkline";
import { numberText } from "../../ui/units";
import { type Rates, ratesOf, rateText } from "./activity";

interface TilesProps {
  readonly figures: Overview;
}

export function Tiles({ figures }: TilesProps) {
  const { slug } = useTenant();
  const { connections, subscriptions, errors } = figures;
  return (
    <section className="tiles" aria-label="Figures">
      <RateTile title="Writes" rates={ratesOf(figures, "writes")} />
      <RateTile title="Events sent" rates={ratesOf(figures, "events")} />
      <Tile title="Live connections" value={connections === null ? "–" : numberText(connections)}>
        <Link href={`/t/${slug}/subscriptions`}>{subscriptionText(subscriptions)}</Link>
      </Tile>
      <Tile title="Errors in 24 hours" value={numberText(errors.count)} isBad={errors.count > 0}>
        <ErrorCodes errors={errors} />
      </Tile>
    </section>
  );
}

interface TileProps {
  readonly title: string;
  readonly value: string;
  readonly unit?: string;
  readonly isBad?: boolean;
  readonly children: ReactNode;
}

function Tile({ title, value, unit, isBad = false, children }: TileProps) {
  return (
    <div className="card tile">
      <h2>{title}</h2>
      <p className={isBad ? "figure-value number bad" : "figure-value number"}>
        {value}
        {unit !== undefined && <small> {unit}</small>}
      </p>
      <div className="tile-foot">{children}</div>
    </div>
  );
}

function RateTile({ title, rates }: { readonly title: string; readonly rates: Rates }) {
  const { values, latest, peak } = rates;
  return (
    <Tile title={title} value={rateText(latest)} unit="/s">
      <Sparkline
        label={`${title} per second over the last hour: ${rateText(latest)}, at most ${rateText(peak)}`}
        values={values}
      />
      <p className="soft number spread">
        <span>last hour</span>
        <span>peak {rateText(peak)}/s</span>
      </p>
    </Tile>
  );
}

function subscriptionText(subscriptions: number | null): string {
  if (subscriptions === null) return "Subscriptions";
  return `${numberText(subscriptions)} ${subscriptions === 1 ? "subscription" : "subscriptions"}`;
}

function ErrorCodes({ errors: { count, codes } }: { readonly errors: Overview["errors"] }) {
  const { slug } = useTenant();
  if (count === 0) return <span className="soft">No errors recorded.</span>;
  return (
    <ul className="error-codes">
      {codes.map(({ code, count: times }) => (
        <li key={code} className="spread">
          <Link className="mono cut" href={`/t/${slug}/errors?code=${encodeURIComponent(code)}`}>
            {code}
          </Link>
          <span className="number soft">{numberText(times)}</span>
        </li>
      ))}
    </ul>
  );
}
