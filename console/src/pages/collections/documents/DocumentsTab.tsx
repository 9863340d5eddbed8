/** The documents of a collection: the grid with its tools, and one document beside it. */

import { useQuery } from "@tanstack/react-query";
import { useCallback, useDeferredValue, useMemo, useRef, useState } from "react";
import { stringify } from "rillbase";
import { failureOf } from "../../../api/failure";
import { useCollections, useTenant } from "../../../api/tenant";
import type { Collection, SavedQuery } from "../../../api/types";
import { storedQuery } from "../../../saved/collectionQuery";
import { SaveQuery } from "../../../saved/SaveQuery";
import type { Draft } from "../../../saved/useSavedQueries";
import { useAddressState } from "../../../shell/useAddressState";
import { Skeleton } from "../../../ui/Empty";
import { ErrorNotice } from "../../../ui/ErrorNotice";
import { Icon } from "../../../ui/Icon";
import { columnsOf } from "./columns";
import { DocumentDialogs, type OpenDialog } from "./DocumentDialogs";
import { DocumentGrid } from "./DocumentGrid";
import { DocumentPanel } from "./DocumentPanel";
import { FilterBar, turned } from "./FilterBar";
import { GridFoot } from "./GridFoot";
import { MoreMenu, NoDocuments, SelectionBar } from "./GridTools";
import {
  GRID_ADDRESS,
  OPENED_ADDRESS,
  type OpenedDocument,
  ROW_ADDRESS,
  stepBetween,
} from "./gridAddress";
import { EVERYTHING, filterOf, type GridQuery, queryOf } from "./gridQuery";
import { lookupsOf } from "./lookups";
import { type Row, useLiveDocuments } from "./useLiveDocuments";
import { useWrites } from "./useWrites";
import { keyOf } from "./values";

/** The grid has no limit, but a saved query is opened in the playground, which has one. */
const SAVED_LIMIT = 100;

type Plain = Record<string, unknown>;

interface TabProps {
  readonly collection: Collection;
}

export function DocumentsTab({ collection }: TabProps) {
  const tab = useDocumentsTab(collection);
  const { gridQuery, setGridQuery, live, rows, fields, mayWrite, setDialog, filter } = tab;
  const { opened, setOpened } = tab;
  const { data: collections = [] } = useCollections();
  const clearSelection = () => tab.setSelected(new Set());

  return (
    <div className="with-panel">
      <div className="left">
        <div className="grid-tools">
          <FilterBar
            gridQuery={gridQuery}
            fields={fields}
            collections={collections.map(({ name }) => name)}
            problem={tab.problem}
            onChange={setGridQuery}
          />
          <EndTools {...{ name: collection.name, filter, mayWrite, setDialog, gridQuery }} />
        </div>
        {rows.length > 0 && mayWrite && (
          <SelectionBar count={rows.length} onDialog={setDialog} onClear={clearSelection} />
        )}
        <GridBody tab={tab} />
        <GridFoot live={live} count={tab.count} />
      </div>
      {opened !== null && <OpenedDocumentPanel tab={tab} opened={opened} />}
      <DocumentDialogs
        {...tab}
        collection={collection}
        onInserted={(id) => setOpened({ id, view: "tree" })}
        onDone={clearSelection}
        onClose={() => setDialog(null)}
      />
    </div>
  );
}

const NONE: readonly Row[] = [];

type DocumentsTabState = ReturnType<typeof useDocumentsTab>;

function useDocumentsTab({ name, schema, read_only: isReadOnly }: Collection) {
  const { client, slug, may } = useTenant();
  const mayWrite = may("developer") && !isReadOnly;
  const { gridQuery, setGridQuery, opened, setOpened, firstRow, setFirstRow } = useGridAddress();
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [dialog, setDialog] = useState<OpenDialog>(null);
  const read = useDeferredValue(useFilter(gridQuery));
  const query = useMemo(
    () => queryOf(client, name, read.filter, gridQuery),
    [client, name, read, gridQuery],
  );
  const live = useLiveDocuments(query, firstRow);
  const documents = useMemo(() => client.collection<Plain>(name), [client, name]);
  const nested = useMemo(
    () => lookupsOf(gridQuery.lookups)?.map(({ as }) => as) ?? [],
    [gridQuery],
  );
  const writes = useWrites(client, name, nested.length > 0);
  const columns = useColumns(live.items, schema, query.key, nested);
  const fields = columns.map(({ path }) => path);
  const count = useCount(slug, name, read.filter, live.items.length);
  const rows = selected.size === 0 ? NONE : live.items.filter(({ id }) => selected.has(keyOf(id)));
  return {
    ...{ gridQuery, setGridQuery, opened, setOpened, firstRow, setFirstRow },
    ...{ selected, setSelected, dialog, setDialog },
    ...{ ...read, live, documents, nested, writes, columns, fields, count, rows, mayWrite },
  };
}

/** What is in the address: the query, the document beside the grid and the first row. */
function useGridAddress() {
  const [gridQuery, changeQuery] = useAddressState(GRID_ADDRESS);
  const [opened, changeOpened] = useAddressState(OPENED_ADDRESS);
  const [firstRow, changeFirstRow] = useAddressState(ROW_ADDRESS);
  return {
    ...{ gridQuery, opened, firstRow },
    setGridQuery: (next: GridQuery) => changeQuery(next, stepBetween(gridQuery, next)),
    setOpened: (next: OpenedDocument | null) => changeOpened(next, "push"),
    setFirstRow: useCallback((row: number) => changeFirstRow(row, "replace"), [changeFirstRow]),
  };
}

type EndToolsProps = Parameters<typeof MoreMenu>[0] & { readonly gridQuery: GridQuery };

function EndTools({ gridQuery, ...props }: EndToolsProps) {
  const { name, filter, mayWrite, setDialog } = props;
  const [saved, setSaved] = useState<SavedQuery | null>(null);
  const draft = (): Draft => {
    const lookup = lookupsOf(gridQuery.lookups);
    const query = { collection: name, filter, sort: gridQuery.sort, limit: SAVED_LIMIT };
    return {
      kind: "collection",
      source: name,
      query: storedQuery(lookup === undefined ? query : { ...query, lookup }),
      chart: null,
    };
  };
  return (
    <div className="end">
      <SaveQuery className="button small plain" draft={draft} saved={saved} onSaved={setSaved} />
      <button type="button" className="button small plain" onClick={() => setDialog("code")}>
        <Icon name="code" size={13} /> Code
      </button>
      <MoreMenu {...props} />
      {mayWrite && (
        <button type="button" className="button small main" onClick={() => setDialog("insert")}>
          <Icon name="plus" size={13} /> New
        </button>
      )}
    </div>
  );
}

/** The grid, or what stands for it: an error, a placeholder, or the empty state. */
function GridBody({ tab }: { readonly tab: DocumentsTabState }) {
  const { gridQuery, setGridQuery, live, opened, mayWrite } = tab;
  return (
    <>
      {live.error !== null && (
        <div className="column">
          <ErrorNotice error={live.error} onRetry={live.again} />
        </div>
      )}
      {!live.hasAnswer && live.error === null && <Skeleton rows={12} />}
      {live.hasAnswer && live.items.length === 0 && (
        <NoDocuments
          isFiltered={Object.keys(tab.filter).length > 0}
          mayWrite={mayWrite}
          onDialog={tab.setDialog}
          onClear={() => setGridQuery(EVERYTHING)}
        />
      )}
      {live.items.length > 0 && (
        <DocumentGrid
          live={live}
          columns={tab.columns}
          nested={tab.nested}
          sort={gridQuery.sort}
          selected={tab.selected}
          opened={opened === null ? null : keyOf(opened.id)}
          firstRow={tab.firstRow}
          onFirstRow={tab.setFirstRow}
          mayWrite={mayWrite}
          onSort={(path) =>
            setGridQuery({ ...gridQuery, sort: turned(gridQuery.sort, path).slice(-2) })
          }
          onSelect={tab.setSelected}
          onOpen={(row) => tab.setOpened({ id: row.id, view: opened?.view ?? "tree" })}
          onSave={tab.writes.save}
        />
      )}
    </>
  );
}

interface OpenedProps {
  readonly tab: DocumentsTabState;
  readonly opened: OpenedDocument;
}

function OpenedDocumentPanel({ tab, opened: { id, view } }: OpenedProps) {
  const { writes, setOpened } = tab;
  return (
    <DocumentPanel
      key={keyOf(id)}
      documents={tab.documents}
      id={id}
      view={view}
      mayWrite={tab.mayWrite}
      onView={(chosen) => setOpened({ id, view: chosen })}
      onSave={writes.save}
      onDelete={(row) => {
        setOpened(null);
        writes.remove([row]);
      }}
      onClose={() => setOpened(null)}
    />
  );
}

interface ReadFilter {
  readonly filter: Plain;
  readonly problem: string | null;
}

/** While a filter is being typed, the last valid one stays in effect. */
function useFilter(gridQuery: GridQuery): ReadFilter {
  const held = useRef<Plain>({});
  return useMemo(() => {
    try {
      held.current = filterOf(gridQuery);
      return { filter: held.current, problem: null };
    } catch (error) {
      return { filter: held.current, problem: failureOf(error).title };
    }
  }, [gridQuery]);
}

/** Columns keep their positions while rows come and go; another query has its own columns. */
function useColumns(
  rows: readonly Row[],
  schema: Plain | null,
  key: string,
  nested: readonly string[],
) {
  const isEmpty = rows.length === 0;
  // biome-ignore lint/correctness/useExhaustiveDependencies: see above.
  return useMemo(() => columnsOf(rows, schema, nested), [schema, key, isEmpty]);
}

function useCount(slug: string, name: string, filter: Plain, held: number): number | null {
  const { client } = useTenant();
  const text = stringify(filter);
  const { data } = useQuery({
    queryKey: [slug, "count", name, text, Math.floor(held / 10)],
    queryFn: () =>
      client
        .collection(name)
        .filter(filter as never)
        .count(),
    placeholderData: (before) => before,
    refetchInterval: 15_000,
  });
  return data ?? null;
}
