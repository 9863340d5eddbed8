/** A table row that expands to show more. */

import { Fragment, type ReactNode, useState } from "react";
import { Icon } from "./Icon";

interface FoldingRowProps {
  /** The name of the row for screen readers, when it is opened or closed. */
  readonly label: string;
  /** The number of cells of the row, including the one with the button. */
  readonly cells: number;
  readonly details: () => ReactNode;
  readonly children: ReactNode;
}

export function FoldingRow({ label, cells, details, children }: FoldingRowProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <Fragment>
      <tr>
        {children}
        <td className="end">
          <button
            type="button"
            className="button small icon plain"
            aria-expanded={isOpen}
            aria-label={`Details of ${label}`}
            onClick={() => setOpen(!isOpen)}
          >
            <Icon name={isOpen ? "down" : "chevron"} size={13} />
          </button>
        </td>
      </tr>
      {isOpen && (
        <tr>
          <td colSpan={cells}>
            <div className="fold">{details()}</div>
          </td>
        </tr>
      )}
    </Fragment>
  );
}
