/** Below the grid: the number of documents, and whether the query is live. */

import type { QueryState } from "rillbase";
import { GRID_SHORTCUTS } from "../../../shell/shortcuts";
import { counted } from "../../../ui/units";
import { type LiveDocuments, MAX_ROWS } from "./useLiveDocuments";

const STATES: Readonly<Record<QueryState, readonly [string, string]>> = {
  connecting: ["warn", "connecting"],
  live: ["good", "live"],
  stale: ["warn", "catching up"],
  offline: ["bad", "offline"],
  failed: ["bad", "stopped"],
};

export function LiveState({ state }: { readonly state: QueryState }) {
  const [tone, text] = STATES[state];
  return (
    <span className={`badge ${tone}`} role="status" data-state={state}>
      <span className={`dot ${tone}`} />
      {text}
    </span>
  );
}

interface GridFootProps {
  readonly live: LiveDocuments;
  readonly count: number | null;
  /** What is counted. */
  readonly noun?: string | undefined;
  /** Whether to show the keyboard shortcuts of the grid. */
  readonly hasKeys?: boolean;
}

export function GridFoot({ live, count, noun = "document", hasKeys = true }: GridFootProps) {
  const loadedCount = live.items.length;
  const isCut = loadedCount >= MAX_ROWS && count !== null && count > loadedCount;
  return (
    <footer className="grid-foot">
      <LiveState state={live.state} />
      {live.state === "failed" && (
        <button type="button" className="button small" onClick={live.again}>
          Reconnect
        </button>
      )}
      <span className="number" data-testid="count">
        {counted(live.isComplete ? loadedCount : (count ?? loadedCount), noun)}
      </span>
      {isCut && (
        <span>
          The first {MAX_ROWS.toLocaleString("en")} are shown and live. Narrow the filter for the
          rest.
        </span>
      )}
      {hasKeys && (
        <span className="end wide-only">
          {GRID_SHORTCUTS.map(([key, does]) => (
            <span key={key}>
              <kbd>{key}</kbd> {does}
            </span>
          ))}
        </span>
      )}
    </footer>
  );
}
