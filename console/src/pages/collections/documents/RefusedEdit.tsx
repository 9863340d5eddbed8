/** An edit that was not saved because another user had changed the field, and how the user decides. */

import { type KeyboardEvent, type MouseEvent, useEffect, useId, useRef, useState } from "react";
import { useToasts } from "../../../ui/toasts";
import type { Conflict, Edit } from "./cellWrite";
import { editableText, textOf, typedValue } from "./values";

export interface Refused extends Conflict {
  readonly edit: Edit;
}

/** Saves edits of a cell, and holds the one that was refused until the user has decided. */
export function useRefusedEdit(onSave: (edit: Edit) => Promise<Conflict | null>) {
  const { fail } = useToasts();
  const [refused, setRefused] = useState<Refused | null>(null);
  const isShown = useRef(true);
  useEffect(() => {
    isShown.current = true;
    return () => {
      isShown.current = false;
    };
  }, []);
  async function save(edit: Edit) {
    setRefused(null);
    const conflict = await onSave(edit);
    if (conflict === null) return;
    if (isShown.current) setRefused({ ...conflict, edit });
    // The cell has been scrolled out of view.
    else fail(new Error(`Your change was not saved. ${changeText(edit, conflict)}`));
  }
  return { refused, save, forget: () => setRefused(null) };
}

const MAX_SHOWN_CHARS = 60;

function changeText({ path }: Edit, { current }: Conflict): string {
  const text = textOf(current);
  const shown = text.length > MAX_SHOWN_CHARS ? `${text.slice(0, MAX_SHOWN_CHARS)}…` : text;
  const change = current === undefined ? "removed" : `changed to ${shown || "an empty text"}`;
  return `${path} was ${change} while you were editing.`;
}

interface RefusedProps {
  readonly label: string;
  readonly refused: Refused;
  /** Saves the edit over the other value. */
  readonly onSave: (edit: Edit) => void;
  readonly onCancel: () => void;
}

/**
 * What was typed, and a question. Enter does not answer it: somebody who presses Enter twice would
 * overwrite a value without having seen it.
 */
export function RefusedEditor({ label, refused, onSave, onCancel }: RefusedProps) {
  const { edit, current, conflicting } = refused;
  const [text, setText] = useState(() => editableText(edit.value));
  const noteId = useId();
  return (
    <>
      <input
        className="cell-editor"
        aria-label={label}
        aria-describedby={noteId}
        // biome-ignore lint/a11y/noAutofocus: the user is asked about this value.
        autoFocus
        value={text}
        onClick={stopAtCell}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          event.stopPropagation();
          if (event.key === "Escape") onCancel();
        }}
      />
      <span className="cell-question" id={noteId} role="alert">
        {changeText(edit, refused)}
        <Answer
          text="Overwrite"
          onChoose={() =>
            onSave({
              ...edit,
              before: current,
              value: typedValue(text, edit.before),
              conflicting,
            })
          }
        />
        <Answer text="Reload" onChoose={onCancel} />
      </span>
    </>
  );
}

function Answer({ text, onChoose }: { readonly text: string; readonly onChoose: () => void }) {
  return (
    <button
      type="button"
      className="button small"
      onKeyDown={stopAtCell}
      onClick={(event) => {
        stopAtCell(event);
        onChoose();
      }}
    >
      {text}
    </button>
  );
}

/** The grid's keys and clicks move the cursor and open editors. */
function stopAtCell(event: KeyboardEvent | MouseEvent) {
  event.stopPropagation();
}
