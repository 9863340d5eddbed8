/**
 * The rows of a result. Only those in view are rendered. Arrow keys move between cells; the footer
 * shows the whole value of the current one and copies it, and so does Ctrl-C.
 */

import { useVirtualizer } from "@tanstack/react-virtual";
import { type ClipboardEvent, type KeyboardEvent, memo, useMemo, useRef, useState } from "react";
import type { SqlAnswer, TableRow } from "rillbase";
import { CopyButton } from "../../../ui/Code";
import { CellValue } from "../../collections/documents/Cell";
import { cellLength, editableText } from "../../collections/documents/values";
import "../../collections/documents/grid.css";

const ROW_PX = 34;
const OVERSCAN_ROWS = 12;
const SAMPLED_ROWS = 60;
const CHAR_PX = 7.6;
const PADDING_PX = 30;
const MIN_PX = 84;
const MAX_PX = 360;
const PAGE_ROWS = 20;

interface Column {
  readonly name: string;
  readonly type: string;
  readonly width: number;
  readonly isNumber: boolean;
}

interface Cursor {
  readonly row: number;
  readonly column: number;
}

type ResultProps = Pick<SqlAnswer<TableRow>, "rows" | "columns">;

export function ResultGrid({ rows, columns: described }: ResultProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const [cursor, setCursor] = useState<Cursor | null>(null);
  const columns = useMemo(() => columnsOf({ rows, columns: described }), [rows, described]);
  const lines = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: OVERSCAN_ROWS,
  });
  const width = columns.reduce((sum, column) => sum + column.width, 0);
  const name = cursor === null ? "" : (columns[cursor.column]?.name ?? "");
  const text = cursor === null ? null : editableText(rows[cursor.row]?.[name]);

  function press(event: KeyboardEvent) {
    const [down, right] = MOVES[event.key] ?? [0, 0];
    if ((down === 0 && right === 0) || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const at = cursor ?? { row: -down, column: -right };
    const row = within(at.row + down, rows.length);
    setCursor({ row, column: within(at.column + right, columns.length) });
    lines.scrollToIndex(row);
  }
  function copy(event: ClipboardEvent) {
    if (text === null || document.getSelection()?.isCollapsed === false) return;
    event.clipboardData.setData("text/plain", text);
    event.preventDefault();
  }
  return (
    <>
      <div
        ref={scroller}
        className="grid result-grid"
        role="grid"
        aria-label="Result"
        aria-rowcount={rows.length + 1}
        aria-colcount={columns.length}
        tabIndex={0}
        onKeyDown={press}
        onCopy={copy}
      >
        <Head columns={columns} width={width} />
        <div className="rows" role="rowgroup" style={{ height: lines.getTotalSize(), width }}>
          {lines.getVirtualItems().map(({ index, start }) => (
            <GridRow
              key={index}
              row={rows[index] ?? {}}
              index={index}
              top={start}
              width={width}
              columns={columns}
              current={cursor?.row === index ? cursor.column : null}
              onCursor={setCursor}
            />
          ))}
        </div>
      </div>
      <footer className="grid-foot result-foot">
        {text === null ? (
          <span>Select a cell to read all of its value and to copy it.</span>
        ) : (
          <>
            <span className="mono">{name}</span>
            {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrolling elements need the keyboard. */}
            <output className="mono" aria-label="Value" tabIndex={0}>
              {text}
            </output>
            <CopyButton text={text} label="Copy the value" />
          </>
        )}
      </footer>
    </>
  );
}

const MOVES: Readonly<Record<string, readonly [down: number, right: number]>> = {
  ArrowDown: [1, 0],
  ArrowUp: [-1, 0],
  ArrowRight: [0, 1],
  ArrowLeft: [0, -1],
  PageDown: [PAGE_ROWS, 0],
  PageUp: [-PAGE_ROWS, 0],
};

function within(index: number, count: number): number {
  return Math.max(0, Math.min(index, count - 1));
}

const NUMBER_TYPE = /^(?:U?(?:TINY|SMALL|BIG|HUGE)?INT(?:EGER)?|FLOAT|DOUBLE|DECIMAL\(.*\))$/;

function columnsOf({ rows, columns }: ResultProps): Column[] {
  const sample = rows.slice(0, SAMPLED_ROWS);
  return columns.map(({ name, type }) => {
    const lengths = sample.map((row) => cellLength(row[name])).sort((a, b) => a - b);
    // The longest tenth of the values may be truncated.
    const usual = lengths[Math.floor(lengths.length * 0.9)] ?? 0;
    const width = Math.max(usual, name.length + type.length + 1) * CHAR_PX + PADDING_PX;
    return {
      name,
      type,
      width: Math.round(Math.min(MAX_PX, Math.max(MIN_PX, width))),
      isNumber: NUMBER_TYPE.test(type),
    };
  });
}

interface HeadProps {
  readonly columns: readonly Column[];
  readonly width: number;
}

function Head({ columns, width }: HeadProps) {
  return (
    <div className="row head" role="row" aria-rowindex={1} style={{ width }}>
      {columns.map((column, index) => (
        <div
          key={column.name}
          className={cellClass(column)}
          role="columnheader"
          aria-colindex={index + 1}
          title={`${column.name} ${column.type}`}
          style={{ width: column.width }}
        >
          <span className="column-name">{column.name}</span>
          <span className="column-type">{column.type.replace(" WITH TIME ZONE", "TZ")}</span>
        </div>
      ))}
    </div>
  );
}

function cellClass({ isNumber }: Column): string {
  return isNumber ? "cell number" : "cell";
}

interface RowProps extends HeadProps {
  readonly row: TableRow;
  readonly index: number;
  readonly top: number;
  /** The column of the current cell, if it is in this row. */
  readonly current: number | null;
  readonly onCursor: (cursor: Cursor) => void;
}

const GridRow = memo(function GridRow(props: RowProps) {
  const { row, index, top, width, columns, current, onCursor } = props;
  return (
    <div
      className="row"
      role="row"
      aria-rowindex={index + 2}
      style={{ transform: `translateY(${top}px)`, width }}
    >
      {columns.map((column, place) => (
        <div
          key={column.name}
          className={current === place ? `${cellClass(column)} at` : cellClass(column)}
          role="gridcell"
          aria-colindex={place + 1}
          style={{ width: column.width }}
          onClick={() => onCursor({ row: index, column: place })}
        >
          <ResultValue value={row[column.name]} type={column.type} />
        </div>
      ))}
    </div>
  );
});

interface ValueProps {
  readonly value: unknown;
  readonly type: string;
}

function ResultValue({ value, type }: ValueProps) {
  if (value === "") return <span className="value null">''</span>;
  if (typeof value === "string" && type.startsWith("TIMESTAMP"))
    return <span className="value date">{timeText(value)}</span>;
  return <CellValue value={value} isPlain />;
}

/** A time is in UTC, and its fraction of a second often zero. */
function timeText(value: string): string {
  return value.replace("T", " ").replace(/(?:\.0+)?Z?$/, "");
}
