/** The collections with their numbers of documents, the largest first. */

import { useState } from "react";
import { Link } from "wouter";
import { useTenant } from "../../api/tenant";
import type { CollectionCounts as Counts } from "../../api/types";
import { numberText } from "../../ui/units";

const SHOWN_FIRST = 8;

export function CollectionCounts({ total, items }: Counts) {
  const { slug } = useTenant();
  const [showsAll, setShowsAll] = useState(false);
  const largestFirst = [...items].sort((a, b) => b.documents - a.documents);
  const most = largestFirst[0]?.documents || 1;
  const shown = showsAll ? largestFirst : largestFirst.slice(0, SHOWN_FIRST);
  return (
    <section className="card" aria-labelledby="overview-collections">
      <div className="section-head">
        <h2 id="overview-collections">Collections</h2>
        <span className="soft">documents</span>
      </div>
      <ul className="shares">
        {shown.map(({ name, documents, is_estimate: isEstimate }) => (
          <li key={name}>
            <span className="spread">
              <Link className="mono cut" href={`/t/${slug}/collections/${name}`}>
                {name}
              </Link>
              <span className="number" title={isEstimate ? "An estimate" : undefined}>
                {isEstimate && "≈ "}
                {numberText(documents)}
              </span>
            </span>
            <i className="share" style={{ width: `${(documents / most) * 100}%` }} />
          </li>
        ))}
      </ul>
      {largestFirst.length > SHOWN_FIRST && (
        <button type="button" className="button small plain" onClick={() => setShowsAll(!showsAll)}>
          {showsAll ? "Show fewer" : `Show ${largestFirst.length - SHOWN_FIRST} more`}
        </button>
      )}
      {total > items.length && (
        <p className="soft">The sidebar lists all {numberText(total)} collections.</p>
      )}
    </section>
  );
}
