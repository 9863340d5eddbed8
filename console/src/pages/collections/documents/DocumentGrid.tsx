/**
 * The documents as rows. Only visible rows are rendered, so ten thousand scroll like ten.
 *
 * It has the role of a grid and is not a table, which would need all of its rows. The grid as a
 * whole handles keys: arrow keys move between cells, Enter edits one, Space opens the document
 * beside the grid.
 */

import { useVirtualizer } from "@tanstack/react-virtual";
import {
  type KeyboardEvent,
  memo,
  type RefObject,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import { flashClass } from "../../../ui/flashes";
import { Icon } from "../../../ui/Icon";
import { CellEditor, CellValue } from "./Cell";
import type { Column } from "./columns";
import { linesOf } from "./lookups";
import { NestedRows } from "./NestedRows";
import { RefusedEditor, useRefusedEdit } from "./RefusedEdit";
import type { LiveDocuments, Row } from "./useLiveDocuments";
import type { Writes } from "./useWrites";
import { keyOf } from "./values";
import "./grid.css";

const ROW_PX = 34;
const OVERSCAN_ROWS = 12;
/** The first column: it selects rows, or is empty if the user may not change them. */
const CHECK_PX = 38;
/** More rows are loaded when the view is this many rows before the end. */
const GROW_AHEAD_ROWS = 60;

export interface Cursor {
  readonly row: number;
  readonly column: number;
}

/** The cell that is being edited. It stays with its row while other rows come and go. */
interface Edited {
  readonly key: string;
  readonly column: number;
}

interface GridProps {
  readonly live: LiveDocuments;
  readonly columns: readonly Column[];
  /** The names of the lookups whose documents are shown below each row. */
  readonly nested?: readonly string[];
  readonly sort: readonly (readonly [string, 1 | -1])[];
  readonly selected: ReadonlySet<string>;
  readonly opened: string | null;
  readonly mayWrite: boolean;
  readonly onSort: (path: string) => void;
  readonly onSelect: (keys: ReadonlySet<string>) => void;
  readonly onOpen: (row: Row) => void;
  readonly onSave: Writes["save"];
  /** The row that is scrolled to, and what takes the first one in view after scrolling. */
  readonly firstRow?: number;
  readonly onFirstRow?: (row: number) => void;
}

const NOTHING: readonly string[] = [];

export function DocumentGrid(props: GridProps) {
  const { live, columns, nested = NOTHING, selected, opened, mayWrite } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const [cursor, setCursor] = useState<Cursor | null>(null);
  const [edited, setEdited] = useState<Edited | null>(null);
  const isEditing = edited !== null && live.items.some(({ id }) => keyOf(id) === edited.key);
  const rows = useVirtualRows(live, nested, scroller);
  useFirstRow(rows, scroller, props);
  const pressed = useKeys({
    ...props,
    cursor,
    setCursor,
    setEdited,
    show: (row) => rows.scrollToIndex(row),
  });
  const actions = useRowActions(props, setCursor, setEdited, scroller);
  const width = CHECK_PX + columns.reduce((sum, column) => sum + column.width, 0);
  return (
    <div
      ref={scroller}
      className="grid"
      role="grid"
      aria-label="Documents"
      aria-rowcount={live.items.length + 1}
      aria-colcount={columns.length + 1}
      tabIndex={0}
      onKeyDown={isEditing ? undefined : pressed}
    >
      <Head {...props} width={width} />
      <div className="rows" role="rowgroup" style={{ height: rows.getTotalSize(), width }}>
        {rows.getVirtualItems().map(({ index, start }) => {
          const row = live.items[index];
          if (row === undefined) return null;
          const key = keyOf(row.id);
          return (
            <GridRow
              key={key}
              row={row}
              index={index}
              top={start}
              width={width}
              columns={columns}
              nested={nested}
              flashes={live.flashes.get(key) ?? 0}
              isSelected={selected.has(key)}
              isOpened={opened === key}
              mayWrite={mayWrite}
              cursor={cursor?.row === index ? cursor.column : null}
              edited={edited?.key === key ? edited.column : null}
              actions={actions}
            />
          );
        })}
      </div>
    </div>
  );
}

/** Renders the rows in view, and loads more when the last of them comes near. */
function useVirtualRows(
  live: LiveDocuments,
  nested: readonly string[],
  scroller: RefObject<HTMLDivElement | null>,
) {
  const hasNested = nested.length > 0;
  const rows = useVirtualizer({
    count: live.items.length,
    getScrollElement: () => scroller.current,
    estimateSize: (index) =>
      hasNested ? ROW_PX * (1 + linesOf(live.items[index]?.document ?? {}, nested).length) : ROW_PX,
    // Without keys of its own, the virtualizer does not go through all rows on each frame.
    overscan: OVERSCAN_ROWS,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: rows are as high as what is below them.
  useLayoutEffect(() => {
    if (hasNested) rows.measure();
  }, [live.items, nested]);
  const shown = rows.getVirtualItems();
  const last = shown[shown.length - 1]?.index ?? 0;
  const { grow } = live;
  useEffect(() => {
    if (last >= live.items.length - GROW_AHEAD_ROWS) grow();
  }, [last, live.items.length, grow]);
  return rows;
}

/** Scrolls to the first row, and reports another one when the user has scrolled. */
function useFirstRow(
  rows: ReturnType<typeof useVirtualRows>,
  scroller: RefObject<HTMLDivElement | null>,
  { live, firstRow = 0, onFirstRow }: GridProps,
) {
  const shown = useRef(0);
  const isLoaded = live.items.length > firstRow || live.isComplete;
  useEffect(() => {
    if (!isLoaded || shown.current === firstRow) return;
    shown.current = firstRow;
    rows.scrollToIndex(firstRow, { align: "start" });
  }, [firstRow, isLoaded, rows]);
  useEffect(() => {
    const element = scroller.current;
    if (element === null || onFirstRow === undefined) return;
    function report() {
      const top = rows.getVirtualItemForOffset(element?.scrollTop ?? 0)?.index ?? 0;
      shown.current = top;
      onFirstRow?.(top);
    }
    element.addEventListener("scrollend", report);
    return () => element.removeEventListener("scrollend", report);
  }, [rows, scroller, onFirstRow]);
}

function Head({
  live,
  columns,
  sort,
  selected,
  onSort,
  onSelect,
  mayWrite,
  width,
}: GridProps & { readonly width: number }) {
  const isAll = selected.size > 0 && selected.size >= live.items.length;
  return (
    <div className="row head" role="row" aria-rowindex={1} style={{ width }}>
      <div className="cell check" role="columnheader" aria-colindex={1} aria-label="Selection">
        {!mayWrite && <span className="hidden">Selection</span>}
        {mayWrite && (
          <input
            type="checkbox"
            aria-label="Select all loaded documents"
            checked={isAll}
            onChange={() =>
              onSelect(isAll ? new Set() : new Set(live.items.map(({ id }) => keyOf(id))))
            }
          />
        )}
      </div>
      {columns.map(({ path, width: cellWidth }, columnIndex) => {
        const direction = sort.find(([field]) => field === path)?.[1];
        const order =
          direction === undefined ? "none" : direction === 1 ? "ascending" : "descending";
        return (
          <div
            key={path}
            className="cell"
            role="columnheader"
            aria-colindex={columnIndex + 2}
            aria-sort={order}
            style={{ width: cellWidth }}
          >
            <button type="button" title={`Sort by ${path}`} onClick={() => onSort(path)}>
              <span className="cut">{path}</span>
              {direction !== undefined && (
                <span className={direction === 1 ? "direction up" : "direction"}>
                  <Icon name="down" size={11} />
                </span>
              )}
            </button>
          </div>
        );
      })}
    </div>
  );
}

interface RowActions {
  readonly focusBack: () => void;
  readonly onSelect: (key: string) => void;
  readonly onCursor: (cursor: Cursor) => void;
  readonly onEdit: (edited: Edited | null) => void;
  readonly onOpen: (row: Row) => void;
  readonly onSave: Writes["save"];
}

/** Returns what rows do; it stays the same, so that rows render only when they change. */
function useRowActions(
  props: GridProps,
  onCursor: (cursor: Cursor) => void,
  onEdit: (edited: Edited | null) => void,
  scroller: RefObject<HTMLDivElement | null>,
): RowActions {
  const latest = useRef(props);
  useLayoutEffect(() => {
    latest.current = props;
  });
  return useMemo(
    () => ({
      focusBack: () => scroller.current?.focus({ preventScroll: true }),
      onSelect: (key) => latest.current.onSelect(toggled(latest.current.selected, key)),
      onCursor,
      onEdit,
      onOpen: (row) => latest.current.onOpen(row),
      onSave: (row, edit) => latest.current.onSave(row, edit),
    }),
    [onCursor, onEdit, scroller],
  );
}

interface RowProps {
  readonly row: Row;
  readonly index: number;
  readonly top: number;
  readonly width: number;
  readonly columns: readonly Column[];
  readonly nested: readonly string[];
  readonly flashes: number;
  readonly isSelected: boolean;
  readonly isOpened: boolean;
  readonly mayWrite: boolean;
  readonly cursor: number | null;
  readonly edited: number | null;
  readonly actions: RowActions;
}

const GridRow = memo(function GridRow(props: RowProps) {
  const { row, index, top, width, columns, nested, flashes, isSelected, isOpened } = props;
  const { mayWrite, actions } = props;
  const key = keyOf(row.id);
  const classes = ["row", flashClass(flashes)];
  if (row.isPending) classes.push("pending");
  if (isOpened) classes.push("opened");
  const className = classes.join(" ");
  const lines = linesOf(row.document, nested);
  return (
    <>
      <div
        className={className}
        role="row"
        aria-rowindex={index + 2}
        aria-selected={isSelected}
        data-key={key}
        style={{ transform: `translateY(${top}px)`, width }}
      >
        <div className="cell check" role="gridcell" aria-colindex={1}>
          {mayWrite && (
            <input
              type="checkbox"
              tabIndex={-1}
              aria-label={`Select ${key}`}
              checked={isSelected}
              onChange={() => actions.onSelect(key)}
            />
          )}
        </div>
        {columns.map((column, columnIndex) => (
          <GridCell key={column.path} {...props} column={column} columnIndex={columnIndex} />
        ))}
      </div>
      <NestedRows
        lines={lines}
        className={className}
        columns={columns.length}
        top={(line) => top + ROW_PX * (line + 1)}
        width={width}
      />
    </>
  );
});

function GridCell(props: RowProps & { readonly column: Column; readonly columnIndex: number }) {
  const { row, index, column, columnIndex, cursor, edited, mayWrite, actions } = props;
  const value = row.document[column.path];
  const isAt = cursor === columnIndex;
  const { refused, save, forget } = useRefusedEdit((edit) => actions.onSave(row, edit));
  const canEdit = mayWrite && column.path !== "_id";
  const key = keyOf(row.id);
  const label = `${column.path} of ${key}`;
  function done() {
    actions.onEdit(null);
    actions.focusBack();
  }
  return (
    <div
      className={isAt ? "cell at" : "cell"}
      role="gridcell"
      aria-colindex={columnIndex + 2}
      style={{ width: column.width }}
      onClick={() => {
        actions.onCursor({ row: index, column: columnIndex });
        if (column.path === "_id") actions.onOpen(row);
      }}
      onDoubleClick={() => canEdit && actions.onEdit({ key, column: columnIndex })}
    >
      {refused !== null ? (
        <RefusedEditor
          label={label}
          refused={refused}
          onSave={(edit) => {
            save(edit);
            actions.focusBack();
          }}
          onCancel={() => {
            forget();
            actions.focusBack();
          }}
        />
      ) : edited === columnIndex && canEdit ? (
        <CellEditor
          label={label}
          value={value}
          onCancel={done}
          onSave={(typed, before) => {
            save({ path: column.path, before, value: typed });
            done();
          }}
        />
      ) : (
        <CellValue value={value} />
      )}
    </div>
  );
}

interface Keys extends GridProps {
  readonly cursor: Cursor | null;
  readonly setCursor: (cursor: Cursor) => void;
  readonly setEdited: (edited: Edited) => void;
  readonly show: (row: number) => void;
}

const MOVES: Readonly<Record<string, readonly [number, number]>> = {
  ArrowDown: [1, 0],
  ArrowUp: [-1, 0],
  ArrowRight: [0, 1],
  ArrowLeft: [0, -1],
  PageDown: [20, 0],
  PageUp: [-20, 0],
};

function useKeys({
  live,
  columns,
  cursor,
  setCursor,
  setEdited,
  show,
  mayWrite,
  selected,
  onOpen,
  onSelect,
}: Keys) {
  return (event: KeyboardEvent) => {
    const at = cursor ?? { row: 0, column: 0 };
    const row = live.items[at.row];
    const move = MOVES[event.key];
    if (move !== undefined && !event.ctrlKey && !event.metaKey) {
      const next = {
        row: within(at.row + (cursor === null ? 0 : move[0]), live.items.length),
        column: within(at.column + (cursor === null ? 0 : move[1]), columns.length),
      };
      setCursor(next);
      show(next.row);
    } else if (event.key === "Enter" && row !== undefined) {
      if (at.column === 0 || !mayWrite) onOpen(row);
      else setEdited({ key: keyOf(row.id), column: at.column });
    } else if (event.key === " " && row !== undefined) {
      onOpen(row);
    } else if (event.key === "x" && row !== undefined) {
      onSelect(toggled(selected, keyOf(row.id)));
    } else {
      return;
    }
    event.preventDefault();
  };
}

function within(index: number, count: number): number {
  return Math.max(0, Math.min(index, count - 1));
}

function toggled(selected: ReadonlySet<string>, key: string): ReadonlySet<string> {
  const next = new Set(selected);
  if (!next.delete(key)) next.add(key);
  return next;
}
