/** One value in the grid, and the editor that replaces it. */

import { useId, useRef, useState } from "react";
import { editableText, kindOf, linkOf, membersOf, textOf, typeChange, typedValue } from "./values";

interface ValueProps {
  readonly value: unknown;
  /** Without a link, for a value inside a button. */
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
  if (kind === "object" || kind === "array") return <MemberChips value={value as object} />;
  return <span className={`value ${kind}`}>{textOf(value)}</span>;
}

function MemberChips({ value }: { readonly value: object }) {
  const { shown, omitted } = membersOf(value);
  const kind = Array.isArray(value) ? "array" : "object";
  if (shown.length === 0) {
    return <span className={`value ${kind}`}>{kind === "array" ? "[]" : "{}"}</span>;
  }
  return (
    <span className={`value ${kind}`} title={textOf(value)}>
      {shown.map(([name, text], place) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: an array may have equal members.
        <span className="member" key={place}>
          {name !== "" && <span className="member-name">{name} </span>}
          {text}
        </span>
      ))}
      {omitted > 0 && <span className="member-name">+{omitted}</span>}
    </span>
  );
}

interface EditorProps {
  readonly label: string;
  readonly value: unknown;
  /** Takes the new value, and the value when editing began. */
  readonly onSave: (value: unknown, before: unknown) => void;
  readonly onCancel: () => void;
}

/**
 * Enter and leaving the cell save, Escape cancels, and each happens once: closing the editor blurs
 * its input. A text that would change the value's type is saved only after a second Enter, and
 * leaving the cell then discards it.
 */
export function CellEditor({ label, value, onSave, onCancel }: EditorProps) {
  const [before] = useState(value);
  const [text, setText] = useState(() => editableText(before));
  const [question, setQuestion] = useState<string | null>(null);
  const isClosed = useRef(false);
  const noteId = useId();
  function close(end: () => void) {
    if (isClosed.current) return;
    isClosed.current = true;
    end();
  }
  function save(mayAsk: boolean) {
    if (text === editableText(before)) return close(onCancel);
    const typed = typedValue(text, before);
    const change = typeChange(before, typed);
    if (change === null || (mayAsk && question !== null)) close(() => onSave(typed, before));
    else if (mayAsk) setQuestion(change);
    else close(onCancel);
  }
  return (
    <>
      <input
        className="cell-editor"
        aria-label={label}
        aria-describedby={question === null ? undefined : noteId}
        // biome-ignore lint/a11y/noAutofocus: the cell was opened to be typed into.
        autoFocus
        value={text}
        onFocus={(event) => event.target.select()}
        onChange={(event) => {
          setText(event.target.value);
          setQuestion(null);
        }}
        onBlur={() => save(false)}
        onKeyDown={(event) => {
          event.stopPropagation();
          if (event.key === "Enter") save(true);
          if (event.key === "Escape") close(onCancel);
        }}
      />
      {question !== null && (
        <span className="cell-question" id={noteId} role="alert">
          {question} <kbd>Enter</kbd> changes the type, <kbd>Esc</kbd> cancels.
        </span>
      )}
    </>
  );
}
