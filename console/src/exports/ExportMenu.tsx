/** Saves the result of a query as a file. */

import { Icon } from "../ui/Icon";
import { Menu, MenuItem } from "../ui/Menu";
import { size } from "../ui/units";
import { EXPORTS, type ExportFormat, type ResultQuery } from "./resultFile";
import { useExport } from "./useExport";

interface ExportProps {
  readonly query: ResultQuery;
  readonly formats?: readonly ExportFormat[];
}

export function ExportMenu({ query, formats = EXPORTS }: ExportProps) {
  const { save, bytes } = useExport(query);
  if (bytes !== null) return <span className="soft number">{size(bytes)} …</span>;
  return (
    <Menu
      label="Export the result"
      className="button small"
      button={
        <>
          <Icon name="download" size={13} /> <span className="roomy-only">Export</span>
        </>
      }
    >
      {(close) =>
        formats.map((format) => (
          <MenuItem
            key={format.ending}
            onSelect={() => {
              close();
              save(format);
            }}
          >
            {format.title}
          </MenuItem>
        ))
      }
    </Menu>
  );
}
