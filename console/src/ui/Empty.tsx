/** Shown instead of an empty list: what belongs here, and how to create the first entry. */

import type { ReactNode } from "react";
import { Icon, type IconName } from "./Icon";

interface EmptyProps {
  readonly icon: IconName;
  readonly title: string;
  readonly children: ReactNode;
  readonly actions?: ReactNode;
}

export function Empty({ icon, title, children, actions }: EmptyProps) {
  return (
    <div className="empty">
      <div className="mark">
        <Icon name={icon} size={20} />
      </div>
      <h2>{title}</h2>
      <div className="soft">{children}</div>
      {actions !== undefined && <div className="actions">{actions}</div>}
    </div>
  );
}

/** A placeholder while data is being fetched. It appears after a delay, so fast responses do not flicker. */
export function Skeleton({ rows = 5 }: { readonly rows?: number }) {
  return (
    <div className="skeleton" aria-hidden="true">
      {Array.from({ length: rows }, (_, row) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the rows are all alike.
        <i key={row} style={{ width: `${[86, 62, 74, 51, 68][row % 5]}%` }} />
      ))}
    </div>
  );
}
