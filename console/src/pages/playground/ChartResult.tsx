/** The live answer as a chart. */

import { useMemo } from "react";
import type { Query } from "rillbase";
import { ChartBuilder } from "../../ui/charts/ChartBuilder";
import type { ChartChoice } from "../../ui/charts/chartData";
import { Skeleton } from "../../ui/Empty";
import { ErrorNotice } from "../../ui/ErrorNotice";
import { GridFoot } from "../collections/documents/GridFoot";
import { useWatched } from "../collections/documents/useLiveDocuments";
import { textOf } from "../collections/documents/values";

interface ChartResultProps {
  readonly query: Query<Record<string, unknown>>;
  readonly chart: ChartChoice | null;
  readonly onChange: (chart: ChartChoice) => void;
}

export function ChartResult({ query, chart, onChange }: ChartResultProps) {
  const live = useWatched(query);
  const rows = useMemo(() => live.items.map(({ document }) => document), [live.items]);
  if (live.error !== null) {
    return (
      <div className="pad">
        <ErrorNotice error={live.error} onRetry={live.again} />
      </div>
    );
  }
  return (
    <>
      {live.hasAnswer ? (
        <ChartBuilder chart={chart} rows={rows} textOf={textOf} onChange={onChange} />
      ) : (
        <Skeleton />
      )}
      <GridFoot live={live} count={null} hasKeys={false} noun="row" />
    </>
  );
}
