/** Rows below a row: the documents that it refers to. */

import { CellValue } from "./Cell";
import { type Line, labelOf } from "./lookups";
import { idText } from "./values";

interface NestedRowsProps {
  readonly lines: readonly Line[];
  readonly className: string;
  readonly columns: number;
  /** The position of a line, in pixels. */
  readonly top: (line: number) => number;
  readonly width: number;
}

export function NestedRows({ lines, className, columns, top, width }: NestedRowsProps) {
  return lines.map((line, place) => (
    <div
      key={line.key}
      className={`${className} nested`}
      role="row"
      aria-label={labelOf(line)}
      style={{ transform: `translateY(${top(place)}px)`, width }}
    >
      <div className="cell" role="gridcell" aria-colindex={1} aria-colspan={columns + 1}>
        <span className="nested-name">
          <span aria-hidden>↳</span> {line.name}
        </span>
        {line.document === null ? (
          <span className="soft">{line.word}</span>
        ) : (
          <Members document={line.document} />
        )}
      </div>
    </div>
  ));
}

function Members({ document }: { readonly document: Readonly<Record<string, unknown>> }) {
  const { _id, ...rest } = document;
  return (
    <>
      <strong className="mono">{idText(_id)}</strong>
      {Object.entries(rest).map(([name, value]) => (
        <span key={name} className="nested-member">
          <span className="soft">{name}</span> <CellValue value={value} />
        </span>
      ))}
    </>
  );
}
