/** A list in one of its states: loading, failed, empty, or loaded. */

import { type ReactNode, useEffect, useRef } from "react";
import { Skeleton } from "./Empty";
import { ErrorNotice } from "./ErrorNotice";

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

/** A table in a frame that scrolls sideways where there is no room. */
export function Table({
  heads,
  numbers = [],
  children,
}: {
  readonly heads: readonly string[];
  /** The heads that stand over numbers. */
  readonly numbers?: readonly string[];
  readonly children: ReactNode;
}) {
  const frame = useReachable();
  return (
    <div ref={frame} className="table-wrap">
      <table className="table">
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

/** Lets the keyboard reach a frame as long as it scrolls sideways. */
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
