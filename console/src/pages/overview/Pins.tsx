/** The pinned charts, live, in an order that the members choose. */

import { Link } from "wouter";
import { useAttempt } from "../../api/list";
import { useTenant } from "../../api/tenant";
import type { SavedQuery } from "../../api/types";
import { SavedChartView, SavedRows } from "../../saved/SavedRows";
import { pathOf, usePins, useSavedQueryChanges } from "../../saved/useSavedQueries";
import { Boundary } from "../../ui/Boundary";
import { ErrorNotice } from "../../ui/ErrorNotice";
import { Icon } from "../../ui/Icon";
import { Menu, MenuItem } from "../../ui/Menu";
import { LiveState } from "../collections/documents/GridFoot";

export function Pins() {
  const { slug, may } = useTenant();
  const { data, error } = usePins();
  if (error !== null) return <ErrorNotice error={error} />;
  if (data === undefined) return null;
  if (data.length === 0) {
    return (
      <section className="card no-pins" aria-label="Pinned charts">
        <Icon name="chart" />
        <p className="soft">
          {may("developer")
            ? "Save a query with a chart and pin it: it stays live here."
            : "Charts that developers pin are shown here, live."}
        </p>
        <Link className="button small" href={`/t/${slug}/playground`}>
          Open the playground
        </Link>
      </section>
    );
  }
  return (
    <section className="pins" aria-label="Pinned charts">
      {data.map((saved, place) => (
        <PinCard key={saved.id} saved={saved} place={place} isLast={place === data.length - 1} />
      ))}
    </section>
  );
}

interface PinCardProps {
  readonly saved: SavedQuery;
  readonly place: number;
  readonly isLast: boolean;
}

function PinCard({ saved, place, isLast }: PinCardProps) {
  const { slug, may } = useTenant();
  return (
    <article className="card pin" aria-label={saved.name} data-pin={saved.name}>
      <Boundary resetOn={saved.updated_at}>
        <SavedRows saved={saved}>
          {(state) => (
            <>
              <header className="section-head">
                <h2 className="cut">
                  <Link href={`/t/${slug}${pathOf(saved)}`}>{saved.name}</Link>
                </h2>
                <span className="pin-tools">
                  {state.state !== null && <LiveState state={state.state} />}
                  {may("developer") && <PinMenu saved={saved} place={place} isLast={isLast} />}
                </span>
              </header>
              <SavedChartView saved={saved} state={state} />
            </>
          )}
        </SavedRows>
      </Boundary>
    </article>
  );
}

function PinMenu({ saved, place, isLast }: PinCardProps) {
  const attempt = useAttempt();
  const { update } = useSavedQueryChanges();
  const pin = (next: number | null, close: () => void) => () => {
    close();
    attempt(() => update(saved.id, { pin: next }));
  };
  return (
    <Menu
      label={`Actions for ${saved.name}`}
      className="button small icon plain"
      button={<Icon name="more" />}
    >
      {(close) => (
        <>
          {place > 0 && <MenuItem onSelect={pin(place - 1, close)}>Move forward</MenuItem>}
          {!isLast && <MenuItem onSelect={pin(place + 1, close)}>Move back</MenuItem>}
          <MenuItem onSelect={pin(null, close)}>Remove from the overview</MenuItem>
        </>
      )}
    </Menu>
  );
}
