/** The rows of a saved query, live, and its chart. */

import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useMemo } from "react";
import type { QueryState, RowQuery, SqlStatement } from "rillbase";
import { useAggregate } from "rillbase/react";
import { useTenant } from "../api/tenant";
import type { SavedQuery } from "../api/types";
import { useWatched } from "../pages/collections/documents/useLiveDocuments";
import { textOf } from "../pages/collections/documents/values";
import { queryOf } from "../pages/playground/playgroundQuery";
import { ChartView } from "../ui/charts/ChartView";
import { fieldsOf, type Row, suggestedChart } from "../ui/charts/chartData";
import { Skeleton } from "../ui/Empty";
import { ErrorNotice } from "../ui/ErrorNotice";
import { rowQueryOf } from "./aggregateQuery";
import { chartOf } from "./chart";
import { playgroundQueryOf } from "./collectionQuery";
import { tableQueryOf } from "./datasetQuery";

export interface RowsState {
  readonly rows: readonly Row[];
  readonly isLoading: boolean;
  readonly error: unknown;
  /** Null if the rows are read periodically instead. */
  readonly state: QueryState | null;
}

interface SavedRowsProps {
  readonly saved: SavedQuery;
  readonly children: (state: RowsState) => ReactNode;
}

export function SavedRows(props: SavedRowsProps) {
  switch (props.saved.kind) {
    case "collection":
      return <CollectionRows {...props} />;
    case "aggregate":
      return <AggregateRows {...props} />;
    case "dataset":
      return <DatasetRows {...props} />;
  }
}

function CollectionRows({ saved, children }: SavedRowsProps) {
  const { client } = useTenant();
  const query = useMemo(() => queryOf(client, playgroundQueryOf(saved)), [client, saved]);
  const { items, state, hasAnswer, error } = useWatched(query);
  const rows = useMemo(() => items.map(({ document }) => document), [items]);
  return children({ rows, state, error, isLoading: !hasAnswer && error === null });
}

function AggregateRows({ saved: { source, query }, children }: SavedRowsProps) {
  const { client } = useTenant();
  const rows = useMemo(() => client.aggregate<Row>(source), [client, source]);
  const rowQuery: RowQuery = useMemo(() => rowQueryOf(query), [query]);
  return children(useAggregate(rows, rowQuery));
}

const DATASET_REFRESH_MS = 15_000;

function DatasetRows({ saved: { source, query }, children }: SavedRowsProps) {
  const { slug, client } = useTenant();
  const { data, error, isPending } = useQuery({
    queryKey: [slug, "dataset-rows", source, query],
    queryFn: async () => {
      const dataset = client.dataset(source);
      const answer = await ("sql" in query
        ? dataset.sql(query as unknown as SqlStatement)
        : dataset.query(tableQueryOf(query)));
      return answer.rows;
    },
    refetchInterval: DATASET_REFRESH_MS,
    placeholderData: (before) => before,
  });
  return children({ rows: data ?? [], error, isLoading: isPending, state: null });
}

interface SavedChartViewProps {
  readonly saved: SavedQuery;
  readonly state: RowsState;
}

/** The chart of a saved query; without one, what the rows suggest. */
export function SavedChartView({ saved, state }: SavedChartViewProps) {
  const { rows, isLoading, error } = state;
  if (error !== null) return <ErrorNotice error={error} />;
  if (isLoading) return <Skeleton rows={4} />;
  const chart = chartOf(saved.chart) ?? suggestedChart(fieldsOf(rows));
  return <ChartView label={saved.name} chart={chart} rows={rows} textOf={textOf} />;
}
