/** The limits of which most is used. */

import { Link } from "wouter";
import { useOne } from "../../api/list";
import { useTenant } from "../../api/tenant";
import type { Quota } from "../../api/types";
import { Skeleton } from "../../ui/Empty";
import { ErrorNotice } from "../../ui/ErrorNotice";
import { QuotaAmount } from "../tenant/QuotaAmount";
import { titleOf } from "../tenant/quotaNames";

const REFRESH_MS = 15_000;
const SHOWN = 5;

interface QuotaSharesProps {
  readonly connections: number | null;
  readonly subscriptions: number | null;
}

export function QuotaShares(live: QuotaSharesProps) {
  const { slug } = useTenant();
  const { data, error } = useOne<Quota>("quota", { refetchMs: REFRESH_MS });
  return (
    <section className="card" aria-labelledby="overview-quota">
      <div className="section-head">
        <h2 id="overview-quota">Quota</h2>
        <Link href={`/t/${slug}/usage`}>Usage</Link>
      </div>
      {error !== null && <ErrorNotice error={error} />}
      {data === undefined && error === null && <Skeleton rows={5} />}
      {data !== undefined && (
        <dl className="quota-shares">
          {mostUsed(data, live).map(({ name, limit, used }) => (
            <div key={name}>
              <dt>{titleOf(name)}</dt>
              <dd>
                <QuotaAmount name={name} limit={limit} used={used} />
              </dd>
            </div>
          ))}
        </dl>
      )}
    </section>
  );
}

interface Share {
  readonly name: string;
  readonly limit: number;
  readonly used: number;
}

function mostUsed({ limits, used }: Quota, live: QuotaSharesProps): readonly Share[] {
  return Object.entries({ ...used, ...live })
    .flatMap(([name, amount]): Share[] => {
      const limit = limits[name] ?? 0;
      return limit === 0 || amount === null ? [] : [{ name, limit, used: amount }];
    })
    .sort((a, b) => b.used / b.limit - a.used / a.limit)
    .slice(0, SHOWN);
}
