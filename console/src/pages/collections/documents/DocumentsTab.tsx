/** The documents of a collection: the grid with its tools, and one document beside it. */

import { useQuery } from "@tanstack/react-query";
import { useDeferredValue, useMemo, useRef, useState } from "react";
import { failureOf } from "../../../api/failure";
import { useTenant } from "../../../api/tenant";
import type { Collection } from "../../../api/types";
import { Confirm } from "../../../ui/Confirm";
import { Empty, Skeleton } from "../../../ui/Empty";
import { ErrorNotice } from "../../../ui/ErrorNotice";
import { Icon } from "../../../ui/Icon";
import { Menu, MenuItem } from "../../../ui/Menu";
import { useToasts } from "../../../ui/toasts";
import { type Asked, EVERYTHING, filterOf, queryOf } from "./asked";
import { BulkEdit } from "./BulkEdit";
import { CodeDialog } from "./CodeDialog";
import { columnsOf } from "./columns";
import { DocumentGrid } from "./DocumentGrid";
import { DocumentPanel } from "./DocumentPanel";
import { FilterBar, turned } from "./FilterBar";
import { GridFoot } from "./GridFoot";
import { InsertDialog } from "./InsertDialog";
import { exportFile, ImportDialog, size } from "./Transfer";
import { type Row, useLiveDocuments } from "./useLiveDocuments";
import { useWrites } from "./useWrites";
import { keyOf } from "./values";

type Plain = Record<string, unknown>;
type OpenDialog =
  | "insert"
  | "import"
  | "code"
  | "edit"
  | "edit-all"
  | "delete"
  | "delete-all"
  | null;

export function DocumentsTab({ collection }: { readonly collection: Collection }) {
  const { client, slug, may } = useTenant();
  const { name, schema } = collection;
  const mayWrite = may("developer");
  const [asked, setAsked] = useState(EVERYTHING);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [opened, setOpened] = useState<unknown>(undefined);
  const [dialog, setDialog] = useState<OpenDialog>(null);
  const read = useDeferredValue(useFilter(asked));
  const query = useMemo(
    () => queryOf(client, name, read.filter, asked),
    [client, name, read, asked],
  );
  const live = useLiveDocuments(query);
  const writes = useWrites(client, name);
  const documents = useMemo(() => client.collection<Plain>(name), [client, name]);
  const columns = useColumns(live.items, schema, query.key);
  const fields = columns.map(({ path }) => path);
  const count = useCount(slug, name, read.filter, live.items.length);
  const rows = live.items.filter(({ id }) => selected.has(keyOf(id)));
  const isEverything = Object.keys(read.filter).length === 0;

  return (
    <div className="with-panel">
      <div className="left">
        <div className="grid-tools">
          <FilterBar asked={asked} fields={fields} problem={read.problem} onChange={setAsked} />
          <div className="end">
            <button type="button" className="button small plain" onClick={() => setDialog("code")}>
              <Icon name="code" size={13} /> Code
            </button>
            <MoreMenu {...{ name, filter: read.filter, mayWrite, setDialog }} />
            {mayWrite && (
              <button
                type="button"
                className="button small main"
                onClick={() => setDialog("insert")}
              >
                <Icon name="plus" size={13} /> New
              </button>
            )}
          </div>
        </div>
        {rows.length > 0 && mayWrite && (
          <SelectionBar
            count={rows.length}
            onDialog={setDialog}
            onClear={() => setSelected(new Set())}
          />
        )}
        {live.error !== null && (
          <div className="column">
            <ErrorNotice error={live.error} />
          </div>
        )}
        {!live.hasAnswer && live.error === null && <Skeleton rows={12} />}
        {live.hasAnswer && live.items.length === 0 && (
          <NoDocuments
            isFiltered={!isEverything}
            mayWrite={mayWrite}
            onDialog={setDialog}
            onClear={() => setAsked(EVERYTHING)}
          />
        )}
        {live.items.length > 0 && (
          <DocumentGrid
            live={live}
            columns={columns}
            sort={asked.sort}
            selected={selected}
            opened={opened === undefined ? null : keyOf(opened)}
            mayWrite={mayWrite}
            onSort={(path) => setAsked({ ...asked, sort: turned(asked.sort, path).slice(-2) })}
            onSelect={setSelected}
            onOpen={(row) => setOpened(row.id)}
            onSave={writes.save}
          />
        )}
        <GridFoot live={live} count={count} />
      </div>
      {opened !== undefined && (
        <DocumentPanel
          key={keyOf(opened)}
          documents={documents}
          id={opened}
          mayWrite={mayWrite}
          onSave={(id, path, value) => {
            const row = live.items.find((item) => keyOf(item.id) === keyOf(id));
            if (row !== undefined) writes.save(row, path, value);
          }}
          onDelete={() => {
            const row = live.items.find((item) => keyOf(item.id) === keyOf(opened));
            setOpened(undefined);
            if (row !== undefined) writes.remove([row]);
          }}
          onClose={() => setOpened(undefined)}
        />
      )}
      <Dialogs
        {...{
          dialog,
          rows,
          fields,
          collection,
          documents,
          writes,
          count,
          asked,
          filter: read.filter,
        }}
        onInserted={setOpened}
        onDone={() => setSelected(new Set())}
        onClose={() => setDialog(null)}
      />
    </div>
  );
}

interface ReadFilter {
  readonly filter: Plain;
  readonly problem: string | null;
}

/** While a filter is being typed, the last one that could be read goes on. */
function useFilter(asked: Asked): ReadFilter {
  const held = useRef<Plain>({});
  return useMemo(() => {
    try {
      held.current = filterOf(asked);
      return { filter: held.current, problem: null };
    } catch (error) {
      return { filter: held.current, problem: failureOf(error).title };
    }
  }, [asked]);
}

/** Columns stay where they are while rows come and go; another query has its own. */
function useColumns(rows: readonly Row[], schema: Plain | null, key: string) {
  const isEmpty = rows.length === 0;
  // biome-ignore lint/correctness/useExhaustiveDependencies: see above.
  return useMemo(() => columnsOf(rows, schema), [schema, key, isEmpty]);
}

function useCount(slug: string, name: string, filter: Plain, held: number): number | null {
  const { client } = useTenant();
  const text = JSON.stringify(filter);
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

interface MoreProps {
  readonly name: string;
  readonly filter: Plain;
  readonly mayWrite: boolean;
  readonly setDialog: (dialog: OpenDialog) => void;
}

function MoreMenu({ name, filter, mayWrite, setDialog }: MoreProps) {
  const { slug } = useTenant();
  const { say, fail } = useToasts();
  const [bytes, setBytes] = useState<number | null>(null);
  async function download() {
    setBytes(0);
    try {
      await exportFile(slug, name, filter, setBytes);
      say(`${name}.ndjson exported.`);
    } catch (error) {
      fail(error);
    } finally {
      setBytes(null);
    }
  }
  if (bytes !== null) return <span className="soft number">{size(bytes)} …</span>;
  const choose = (dialog: OpenDialog, close: () => void) => () => {
    close();
    setDialog(dialog);
  };
  return (
    <Menu label="More" className="button small icon plain" button={<Icon name="more" />}>
      {(close) => (
        <>
          <MenuItem
            onSelect={() => {
              close();
              download();
            }}
          >
            <Icon name="download" size={14} /> Export what matches
          </MenuItem>
          {mayWrite && (
            <>
              <MenuItem onSelect={choose("import", close)}>
                <Icon name="upload" size={14} /> Import
              </MenuItem>
              <hr />
              <MenuItem onSelect={choose("edit-all", close)}>
                <Icon name="edit" size={14} /> Change all that matches
              </MenuItem>
              <MenuItem danger onSelect={choose("delete-all", close)}>
                <Icon name="trash" size={14} /> Delete all that matches
              </MenuItem>
            </>
          )}
        </>
      )}
    </Menu>
  );
}

interface SelectionProps {
  readonly count: number;
  readonly onDialog: (dialog: OpenDialog) => void;
  readonly onClear: () => void;
}

function SelectionBar({ count, onDialog, onClear }: SelectionProps) {
  return (
    <div className="selection-bar" role="status">
      <strong className="number">{count} selected</strong>
      <button type="button" className="button small" onClick={() => onDialog("edit")}>
        <Icon name="edit" size={13} /> Change
      </button>
      <button type="button" className="button small danger" onClick={() => onDialog("delete")}>
        <Icon name="trash" size={13} /> Delete
      </button>
      <button type="button" className="button small plain" onClick={onClear}>
        Clear
      </button>
    </div>
  );
}

interface NoDocumentsProps {
  readonly isFiltered: boolean;
  readonly mayWrite: boolean;
  readonly onDialog: (dialog: OpenDialog) => void;
  readonly onClear: () => void;
}

function NoDocuments({ isFiltered, mayWrite, onDialog, onClear }: NoDocumentsProps) {
  if (isFiltered) {
    return (
      <Empty
        icon="filter"
        title="Nothing matches"
        actions={
          <button type="button" className="button" onClick={onClear}>
            Clear the filter
          </button>
        }
      >
        The filter is watched: a document that comes to match appears here by itself.
      </Empty>
    );
  }
  const actions = mayWrite && (
    <>
      <button type="button" className="button main" onClick={() => onDialog("insert")}>
        New document
      </button>
      <button type="button" className="button" onClick={() => onDialog("import")}>
        Import a file
      </button>
    </>
  );
  return (
    <Empty icon="collection" title="No documents yet" actions={actions || undefined}>
      Documents appear here the moment they are written, whoever writes them: the console, your app,
      or a script.
    </Empty>
  );
}

interface DialogsProps {
  readonly dialog: OpenDialog;
  readonly rows: readonly Row[];
  readonly fields: readonly string[];
  readonly collection: Collection;
  readonly documents: ReturnType<ReturnType<typeof useTenant>["client"]["collection"]>;
  readonly writes: ReturnType<typeof useWrites>;
  readonly count: number | null;
  readonly asked: Asked;
  readonly filter: Plain;
  readonly onInserted: (id: unknown) => void;
  readonly onDone: () => void;
  readonly onClose: () => void;
}

function Dialogs(props: DialogsProps) {
  const {
    dialog,
    rows,
    fields,
    collection,
    documents,
    writes,
    count,
    asked,
    filter,
    onClose,
    onDone,
  } = props;
  const { name, schema } = collection;
  const some = rows.length === 1 ? "1 document" : `${rows.length} documents`;
  const every = count === null ? "everything that matches" : `${count} documents`;
  switch (dialog) {
    case null:
      return null;
    case "insert":
      return (
        <InsertDialog
          documents={documents as never}
          schema={schema}
          onInserted={props.onInserted}
          onClose={onClose}
        />
      );
    case "import":
      return <ImportDialog collection={name} onClose={onClose} />;
    case "code":
      return <CodeDialog collection={name} filter={filter} sort={asked.sort} onClose={onClose} />;
    case "edit":
      return (
        <BulkEdit
          whom={some}
          fields={fields}
          onApply={(update) =>
            writes.updateMany({ _id: { $in: rows.map(({ id }) => id) } }, update)
          }
          onClose={onClose}
        />
      );
    case "edit-all":
      return (
        <BulkEdit
          whom={every}
          fields={fields}
          onApply={(update) => writes.updateMany(filter, update)}
          onClose={onClose}
        />
      );
    case "delete":
      return (
        <Confirm
          title={`Delete ${some}?`}
          action="Delete"
          onConfirm={() => writes.remove(rows).then(onDone)}
          onClose={onClose}
        >
          For a few seconds you can undo it.
        </Confirm>
      );
    case "delete-all":
      return (
        <Confirm
          title={`Delete ${every}?`}
          action="Delete all"
          typed={name}
          onConfirm={() => writes.deleteMany(filter)}
          onClose={onClose}
        >
          Everything that matches the filter is deleted, whether it is in view or not. This cannot
          be undone.
        </Confirm>
      );
  }
}
