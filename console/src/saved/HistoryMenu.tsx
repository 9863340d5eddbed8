/** A menu of what was run last. */

import { Menu, MenuItem } from "../ui/Menu";

interface HistoryMenuProps {
  readonly label: string;
  readonly className?: string;
  readonly entries: readonly string[];
  readonly summaryOf: (entry: string) => string;
  readonly onLoad: (entry: string) => void;
  readonly onClear: () => void;
}

export function HistoryMenu(props: HistoryMenuProps) {
  const { label, className = "button", entries, summaryOf, onLoad, onClear } = props;
  if (entries.length === 0) return null;
  return (
    <Menu label={label} className={className} button="History">
      {(close) => (
        <>
          {entries.map((entry) => (
            <MenuItem
              key={entry}
              onSelect={() => {
                onLoad(entry);
                close();
              }}
            >
              <span className="mono">{summaryOf(entry)}</span>
            </MenuItem>
          ))}
          <MenuItem danger onSelect={onClear}>
            Clear history
          </MenuItem>
        </>
      )}
    </Menu>
  );
}
