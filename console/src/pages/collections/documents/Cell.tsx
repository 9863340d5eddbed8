/** One value in the grid, and the editor that takes its place. */

import { useState } from "react";
import { editableText, kindOf, linkOf, textOf, typedValue } from "./values";

interface ValueProps {
  readonly value: unknown;
  /** Without a link, where the value is part of a button. */
  readonly isPlain?: boolean;
}

export function CellValue({ value, isPlain = false }: ValueProps) {
  const kind = kindOf(value);
  if (kind === "absent") return <span className="value absent">–</span>;
  const link = isPlain ? null : linkOf(value);
  if (link !== null) {
    return (
      <a className="value link" href={link} target="_blank" rel="noreferrer noopener" tabIndex={-1}>
        {textOf(value)}
      </a>
    );
  }
  return <span className={`value ${kind}`}>{textOf(value)}</span>;
}

interface EditorProps {
  readonly label: string;
  readonly value: unknown;
  readonly onSave: (value: unknown) => void;
  readonly onCancel: () => void;
}

export function CellEditor({ label, value, onSave, onCancel }: EditorProps) {
  const [text, setText] = useState(() => editableText(value));
  function save() {
    if (text === editableText(value)) onCancel();
    else onSave(typedValue(text, value));
  }
  return (
    <input
      className="cell-editor"
      aria-label={label}
      // biome-ignore lint/a11y/noAutofocus: the cell was opened to be typed into.
      autoFocus
      value={text}
      onFocus={(event) => event.target.select()}
      onChange={(event) => setText(event.target.value)}
      onBlur={save}
      onKeyDown={(event) => {
        event.stopPropagation();
        if (event.key === "Enter") save();
        if (event.key === "Escape") onCancel();
      }}
    />
  );
}
