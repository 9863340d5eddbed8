/** A page that lists the tenant's objects of a kind, with a button that creates one. */

import { type ReactNode, useState } from "react";
import { useList } from "../api/list";
import { useTenant } from "../api/tenant";
import { Empty } from "../ui/Empty";
import { Icon, type IconName } from "../ui/Icon";
import { Listing, Table } from "../ui/Listing";
import { PageHead } from "./Shell";

interface ListPageProps<T> {
  readonly title: string;
  /** The list's path below the tenant's. */
  readonly path: string;
  /** What the button says. */
  readonly action: string;
  readonly heads: readonly string[];
  /** The headings of numeric columns. */
  readonly numbers?: readonly string[];
  readonly none: { readonly icon: IconName; readonly title: string; readonly about: string };
  /** Returns the cells of an object. */
  readonly cells: (item: T) => ReactNode;
  /** Returns the dialog that creates an object. */
  readonly dialog: (onClose: () => void) => ReactNode;
}

export function ListPage<T extends { readonly id: string }>({
  title,
  path,
  action,
  heads,
  numbers = [],
  none,
  cells,
  dialog,
}: ListPageProps<T>) {
  const { may } = useTenant();
  const read = useList<T>(path);
  const [isAdding, setAdding] = useState(false);
  const add = may("developer") && (
    <button type="button" className="button main" onClick={() => setAdding(true)}>
      <Icon name="plus" size={14} /> {action}
    </button>
  );
  return (
    <>
      <PageHead title={title}>{add}</PageHead>
      <div className="page-body">
        <div className="column">
          <Listing
            read={read}
            empty={
              <Empty icon={none.icon} title={none.title} actions={add || undefined}>
                {none.about}
              </Empty>
            }
          >
            {(items) => (
              <Table stacks heads={heads} numbers={numbers}>
                {items.map((item) => (
                  <tr key={item.id}>{cells(item)}</tr>
                ))}
              </Table>
            )}
          </Listing>
        </div>
      </div>
      {isAdding && dialog(() => setAdding(false))}
    </>
  );
}
