/** A list in one of its states: loading, failed, empty, or loaded. */

import { type CSSProperties, type ReactNode, useEffect, useRef } from "react";
import { Skeleton } from "./Empty";
import { ErrorNotice } from "./ErrorNotice";
import "./stacks.css";

interface Read<T> {
  readonly data: readonly T[] | undefined;
  readonly error: unknown;
  readonly refetch: () => unknown;
}

interface ListingProps<T> {
  readonly read: Read<T>;
  readonly empty: ReactNode;
  readonly children: (items: readonly T[]) => ReactNode;
}

export function Listing<T>({ read: { data, error, refetch }, empty, children }: ListingProps<T>) {
  if (data === undefined && error) return <ErrorNotice error={error} onRetry={() => refetch()} />;
  if (data === undefined) return <Skeleton rows={4} />;
  return data.length === 0 ? empty : children(data);
}

interface TableProps {
  readonly heads: readonly string[];
  /** The headings of numeric columns. */
  readonly numbers?: readonly string[];
  /** Whether each row becomes a card on narrow screens. */
  readonly stacks?: boolean;
  readonly children: ReactNode;
}

/** A table in a frame that scrolls sideways if it is too wide, unless it stacks. */
export function Table({ heads, numbers = [], stacks = false, children }: TableProps) {
  const frame = useReachable();
  return (
    <div ref={frame} className="table-wrap">
      <table
        className={stacks ? "table stacks" : "table"}
        style={stacks ? labelsOf(heads) : undefined}
      >
        <thead>
          <tr>
            {heads.map((head, place) =>
              head === "" ? (
                // biome-ignore lint/suspicious/noArrayIndexKey: heads stay where they are.
                <td key={place} />
              ) : (
                <th
                  key={head}
                  scope="col"
                  className={numbers.includes(head) ? "number" : undefined}
                >
                  {head}
                </th>
              ),
            )}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

/** Returns the labels of a card's lines as CSS properties, which the style sheet reads. */
function labelsOf(heads: readonly string[]): CSSProperties {
  return Object.fromEntries(heads.map((head, index) => [`--head-${index + 1}`, `"${head}"`]));
}

/** Makes a frame focusable while it scrolls sideways. */
function useReachable() {
  const frame = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = frame.current;
    const content = element?.firstElementChild;
    if (!element || !content) return;
    const look = () => {
      if (element.scrollWidth > element.clientWidth) element.tabIndex = 0;
      else element.removeAttribute("tabindex");
    };
    const sizes = new ResizeObserver(look);
    sizes.observe(element);
    sizes.observe(content);
    return () => sizes.disconnect();
  }, []);
  return frame;
}
