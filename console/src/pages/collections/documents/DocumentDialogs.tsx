/** The dialogs over the grid: insert, import, change and delete documents. */

import type { useTenant } from "../../../api/tenant";
import type { Collection } from "../../../api/types";
import { Confirm } from "../../../ui/Confirm";
import { counted } from "../../../ui/units";
import { BulkEdit } from "./BulkEdit";
import { CodeDialog } from "./CodeDialog";
import type { GridQuery } from "./gridQuery";
import { ImportDialog } from "./ImportDialog";
import { InsertDialog } from "./InsertDialog";
import { lookupsOf } from "./lookups";

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
  readonly gridQuery: GridQuery;
  readonly filter: Plain;
  readonly onInserted: (id: unknown) => void;
  readonly onDone: () => void;
  readonly onClose: () => void;
}

export function DocumentDialogs(props: DialogsProps) {
  const { dialog, collection, documents, gridQuery, filter, onClose } = props;
  switch (dialog) {
    case null:
      return null;
    case "insert":
      return (
        <InsertDialog
          documents={documents as never}
          schema={collection.schema}
          onInserted={props.onInserted}
          onClose={onClose}
        />
      );
    case "import":
      return <ImportDialog collection={collection.name} onClose={onClose} />;
    case "code":
      return (
        <CodeDialog
          collection={collection.name}
          filter={filter}
          sort={gridQuery.sort}
          lookup={lookupsOf(gridQuery.lookups)}
          onClose={onClose}
        />
      );
    case "edit":
    case "delete":
      return <SelectionDialog {...props} />;
    case "edit-all":
    case "delete-all":
      return <MatchingDialog {...props} />;
  }
}

/** Changes or deletes the selected rows. */
function SelectionDialog({ dialog, rows, fields, writes, onDone, onClose }: DialogsProps) {
  const affected = counted(rows.length, "document");
  if (dialog === "edit") {
    const filter = { _id: { $in: rows.map(({ id }) => id) } };
    return <EditDialog {...{ affected, filter, fields, writes, onClose }} />;
  }
  return (
    <Confirm
      title={`Delete ${affected}?`}
      action="Delete"
      onConfirm={() => writes.remove(rows).then(onDone)}
      onClose={onClose}
    >
      You can undo this for a few seconds.
    </Confirm>
  );
}

/** Changes or deletes every document that matches the filter. */
function MatchingDialog(props: DialogsProps) {
  const { dialog, count, filter, fields, writes, onClose } = props;
  const affected = count === null ? "all matching documents" : counted(count, "document");
  if (dialog === "edit-all") {
    return <EditDialog {...{ affected, filter, fields, writes, onClose }} />;
  }
  return (
    <Confirm
      title={`Delete ${affected}?`}
      action="Delete all"
      typed={props.collection.name}
      onConfirm={() => writes.deleteMany(filter)}
      onClose={onClose}
    >
      This deletes every document that matches the filter, including those not shown. It cannot be
      undone.
    </Confirm>
  );
}

type EditProps = Pick<DialogsProps, "filter" | "fields" | "writes" | "onClose"> & {
  readonly affected: string;
};

function EditDialog({ affected, filter, fields, writes, onClose }: EditProps) {
  return (
    <BulkEdit
      whom={affected}
      fields={fields}
      onApply={(update) => writes.updateMany(filter, update)}
      onClose={onClose}
    />
  );
}
