/** Below the grid: how much there is, and whether it is live. */

import type { QueryState } from "rillbase";
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

export function GridFoot({
  live,
  count,
}: {
  readonly live: LiveDocuments;
  readonly count: number | null;
}) {
  const held = live.items.length;
  const isCut = held >= MAX_ROWS && count !== null && count > held;
  return (
    <footer className="grid-foot">
      <LiveState state={live.state} />
      {live.state === "failed" && (
        <button type="button" className="button small" onClick={live.again}>
          Watch again
        </button>
      )}
      <span className="number" data-testid="count">
        {(live.isComplete ? held : (count ?? held)).toLocaleString("en")} documents
      </span>
      {isCut && (
        <span>
          The first {MAX_ROWS.toLocaleString("en")} are shown and live. Narrow the filter for the
          rest.
        </span>
      )}
      <span className="end wide-only">
        <span>
          <kbd>↑↓←→</kbd> move
        </span>
        <span>
          <kbd>Enter</kbd> edit
        </span>
        <span>
          <kbd>Space</kbd> open
        </span>
        <span>
          <kbd>X</kbd> select
        </span>
      </span>
    </footer>
  );
}
