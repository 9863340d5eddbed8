/** The overview page of a tenant: its resources and its activity. */

import { Suspense, useState } from "react";
import { useOne } from "../../api/list";
import type { Overview as OverviewFigures } from "../../api/types";
import { lazyPage } from "../../shell/lazyPage";
import { PageHead } from "../../shell/Shell";
import { Skeleton } from "../../ui/Empty";
import { ErrorNotice } from "../../ui/ErrorNotice";
import { CollectionCounts } from "./CollectionCounts";
import { Pins } from "./Pins";
import { QuotaShares } from "./QuotaShares";
import { Tiles } from "./Tiles";
import "./overview.css";

const GetStarted = lazyPage(() => import("../start/GetStarted"));

const REFRESH_MS = 5_000;

export default function Overview() {
  const { data, error } = useOne<OverviewFigures>("overview", { refetchMs: REFRESH_MS });
  const isNew = useIsNew(data);
  return (
    <>
      <PageHead title="Overview" />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrolling elements need the keyboard. */}
      <div className="page-body" tabIndex={0}>
        {isNew ? (
          <Suspense fallback={<Skeleton />}>
            <GetStarted />
          </Suspense>
        ) : (
          <div className="column overview">
            {error !== null && <ErrorNotice error={error} />}
            {data === undefined && error === null && <Placeholder />}
            {data !== undefined && <Figures figures={data} />}
          </div>
        )}
      </div>
    </>
  );
}

function Figures({ figures }: { readonly figures: OverviewFigures }) {
  return (
    <>
      <Tiles figures={figures} />
      <Pins />
      <div className="overview-lists">
        <CollectionCounts {...figures.collections} />
        <QuotaShares connections={figures.connections} subscriptions={figures.subscriptions} />
      </div>
    </>
  );
}

/** Returns whether the tenant had no collection when the page was opened. The first steps stay in
 * view while they are taken, which makes the tenant one that has something. */
function useIsNew(figures: OverviewFigures | undefined): boolean {
  const [isNew, setNew] = useState<boolean | null>(null);
  if (isNew === null && figures !== undefined) setNew(figures.collections.total === 0);
  return isNew === true;
}

function Placeholder() {
  return (
    <div className="tiles" aria-hidden="true">
      {["writes", "events", "connections", "errors"].map((name) => (
        <div key={name} className="card">
          <Skeleton rows={3} />
        </div>
      ))}
    </div>
  );
}
