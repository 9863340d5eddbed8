/** The requests of the last day, as they arrive. */

import { useMemo, useState } from "react";
import { usePages } from "../../api/list";
import type { RequestEntry, RequestEntryPage } from "../../api/types";
import { PageHead } from "../../shell/Shell";
import { useFilters, without } from "../../shell/useFilters";
import { Empty } from "../../ui/Empty";
import { Icon } from "../../ui/Icon";
import { Listing } from "../../ui/Listing";
import { LoadMore } from "../../ui/LoadMore";
import { FilterBar } from "./FilterBar";
import { MissingNotice } from "./MissingNotice";
import { RequestPanel } from "./RequestPanel";
import { RequestTable } from "./RequestTable";
import { asParameters, NAMES, type RequestFilters } from "./requestFilters";
import "../../ui/panel.css";
import "./requests.css";

/** Servers flush their request logs every two seconds. */
const REFRESH_MS = 2_000;

export default function Requests() {
  const [filters, change] = useFilters(NAMES);
  const [isLive, setLive] = useState(true);
  const [opened, setOpened] = useState<RequestEntry | null>(null);
  const log = useRequestLog(filters, isLive);
  return (
    <>
      <PageHead title="Requests">
        <LiveToggle isLive={isLive} onChange={setLive} />
      </PageHead>
      <div className="page-body fill requests">
        <FilterBar filters={filters} onChange={change} />
        <div className="beside">
          <div className="request-list">
            {log.first !== undefined && <MissingNotice missing={log.first.missing} />}
            <Listing
              read={log}
              empty={
                <Nothing
                  isRecorded={log.first?.is_recorded ?? true}
                  isFiltered={Object.keys(filters).length > 0}
                  onClear={() => change(without(NAMES))}
                />
              }
            >
              {(entries) => (
                <RequestTable entries={entries} openedId={opened?.id ?? null} onOpen={setOpened} />
              )}
            </Listing>
            {/* Earlier entries are read with new ones arriving: the list would move. */}
            <LoadMore read={log} onLoad={() => setLive(false)} />
          </div>
          {opened !== null && (
            <RequestPanel entry={opened} onFilter={change} onClose={() => setOpened(null)} />
          )}
        </div>
      </div>
    </>
  );
}

function useRequestLog(filters: RequestFilters, isLive: boolean) {
  const parameters = useMemo(() => asParameters(filters, Date.now()), [filters]);
  return usePages<RequestEntry, RequestEntryPage>(
    "request-log",
    parameters,
    isLive ? { refetchMs: REFRESH_MS } : {},
  );
}

interface LiveToggleProps {
  readonly isLive: boolean;
  readonly onChange: (isLive: boolean) => void;
}

function LiveToggle({ isLive, onChange }: LiveToggleProps) {
  return (
    <>
      <span className="live-state" role="status">
        <span className={isLive ? "dot good" : "dot"} />
        {isLive ? "Live" : "Paused"}
      </span>
      <button type="button" className="button small" onClick={() => onChange(!isLive)}>
        <Icon name={isLive ? "pause" : "play"} size={12} />
        {isLive ? "Pause" : "Resume"}
      </button>
    </>
  );
}

interface NothingProps {
  readonly isRecorded: boolean;
  readonly isFiltered: boolean;
  readonly onClear: () => void;
}

function Nothing({ isRecorded, isFiltered, onClear }: NothingProps) {
  if (!isRecorded) {
    return (
      <Empty icon="list" title="Requests are not recorded">
        The operator of this installation has turned the request log off.
      </Empty>
    );
  }
  if (!isFiltered) {
    return (
      <Empty icon="list" title="No requests yet">
        Every call of this tenant appears here within seconds: method, route, status, duration and
        caller, but no contents. Entries are kept for 24 hours.
      </Empty>
    );
  }
  return (
    <Empty
      icon="search"
      title="No matching requests"
      actions={
        <button type="button" className="button" onClick={onClear}>
          Clear the filters
        </button>
      }
    >
      No request of this period matches all of the filters.
    </Empty>
  );
}
