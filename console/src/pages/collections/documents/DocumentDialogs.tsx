/** The dialogs over the grid: what is inserted, brought in, changed and deleted. */

import type { useTenant } from "../../../api/tenant";
import type { Collection } from "../../../api/types";
import { Confirm } from "../../../ui/Confirm";
import type { Asked } from "./asked";
import { BulkEdit } from "./BulkEdit";
import { CodeDialog } from "./CodeDialog";
import { InsertDialog } from "./InsertDialog";
import { lookupsOf } from "./lookups";
import { ImportDialog } from "./Transfer";
import type { Row } from "./useLiveDocuments";
import type { useWrites } from "./useWrites";

type Plain = Record<string, unknown>;
export type OpenDialog =
  | "insert"
  | "import"
  | "code"
  | "edit"
  | "edit-all"
  | "delete"
  | "delete-all"
  | null;

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

export function DocumentDialogs(props: DialogsProps) {
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
      return (
        <CodeDialog
          collection={name}
          filter={filter}
          sort={asked.sort}
          lookup={lookupsOf(asked.lookups)}
          onClose={onClose}
        />
      );
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
