/** The parts around the grid: further actions, the selection, and the message for an empty grid. */

import { useState } from "react";
import { useTenant } from "../../../api/tenant";
import { Empty } from "../../../ui/Empty";
import { Icon } from "../../../ui/Icon";
import { Menu, MenuItem } from "../../../ui/Menu";
import { useToasts } from "../../../ui/toasts";
import { size } from "../../../ui/units";
import type { OpenDialog } from "./DocumentDialogs";
import { EXPORT_FORMATS, type ExportFormat, exportFile } from "./exportFile";

type Plain = Record<string, unknown>;

interface MoreProps {
  readonly name: string;
  readonly filter: Plain;
  readonly mayWrite: boolean;
  readonly setDialog: (dialog: OpenDialog) => void;
}

export function MoreMenu({ name, filter, mayWrite, setDialog }: MoreProps) {
  const { slug } = useTenant();
  const { showMessage, fail } = useToasts();
  const [bytes, setBytes] = useState<number | null>(null);
  async function download(format: ExportFormat) {
    setBytes(0);
    try {
      await exportFile(slug, name, filter, format, setBytes);
      showMessage(`${name}.${format} exported.`);
    } catch (error) {
      fail(error);
    } finally {
      setBytes(null);
    }
  }
  if (bytes !== null) return <span className="soft number">{size(bytes)} …</span>;
  const choose = (dialog: OpenDialog, close: () => void) => () => {
    close();
    setDialog(dialog);
  };
  return (
    <Menu label="More" className="button small icon plain" button={<Icon name="more" />}>
      {(close) => (
        <>
          {EXPORT_FORMATS.map(([format, title]) => (
            <MenuItem
              key={format}
              onSelect={() => {
                close();
                download(format);
              }}
            >
              <Icon name="download" size={14} /> Export as {title}
            </MenuItem>
          ))}
          {mayWrite && (
            <>
              <MenuItem onSelect={choose("import", close)}>
                <Icon name="upload" size={14} /> Import
              </MenuItem>
              <hr />
              <MenuItem onSelect={choose("edit-all", close)}>
                <Icon name="edit" size={14} /> Change matching documents
              </MenuItem>
              <MenuItem danger onSelect={choose("delete-all", close)}>
                <Icon name="trash" size={14} /> Delete matching documents
              </MenuItem>
            </>
          )}
        </>
      )}
    </Menu>
  );
}

interface SelectionProps {
  readonly count: number;
  readonly onDialog: (dialog: OpenDialog) => void;
  readonly onClear: () => void;
}

export function SelectionBar({ count, onDialog, onClear }: SelectionProps) {
  return (
    <div className="selection-bar" role="status">
      <strong className="number">{count} selected</strong>
      <button type="button" className="button small" onClick={() => onDialog("edit")}>
        <Icon name="edit" size={13} /> Change
      </button>
      <button type="button" className="button small danger" onClick={() => onDialog("delete")}>
        <Icon name="trash" size={13} /> Delete
      </button>
      <button type="button" className="button small plain" onClick={onClear}>
        Clear
      </button>
    </div>
  );
}

interface NoDocumentsProps {
  readonly isFiltered: boolean;
  readonly mayWrite: boolean;
  readonly onDialog: (dialog: OpenDialog) => void;
  readonly onClear: () => void;
}

export function NoDocuments({ isFiltered, mayWrite, onDialog, onClear }: NoDocumentsProps) {
  if (isFiltered) {
    return (
      <Empty
        icon="filter"
        title="No matching documents"
        actions={
          <button type="button" className="button" onClick={onClear}>
            Clear the filter
          </button>
        }
      >
        The filter is live: new matching documents appear here.
      </Empty>
    );
  }
  const actions = mayWrite && (
    <>
      <button type="button" className="button main" onClick={() => onDialog("insert")}>
        New document
      </button>
      <button type="button" className="button" onClick={() => onDialog("import")}>
        Import a file
      </button>
    </>
  );
  return (
    <Empty icon="collection" title="No documents yet" actions={actions || undefined}>
      Documents appear here as soon as they are written, by the console, your app or a script.
    </Empty>
  );
}
