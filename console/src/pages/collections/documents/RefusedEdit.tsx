/**
 * An edit that was not saved, because another user had changed the field or the server rejected the
 * value, and how the user decides.
 */

import { type KeyboardEvent, type MouseEvent, useEffect, useId, useRef, useState } from "react";
import { useToasts } from "../../../ui/toasts";
import type { Conflict, Edit, Unsaved } from "./cellWrite";
import { editableText, textOf, typedValue } from "./values";

export type Refused = Unsaved & { readonly edit: Edit };

/** Saves edits of a cell, and holds the one that was refused until the user has decided. */
export function useRefusedEdit(onSave: (edit: Edit) => Promise<Unsaved | null>) {
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
    const unsaved = await onSave(edit);
    if (unsaved === null) return;
    if (isShown.current) setRefused({ ...unsaved, edit });
    // The cell has been scrolled out of view.
    else fail(new Error(`Your change was not saved. ${reasonOf(edit, unsaved)}`));
  }
  return { refused, save, forget: () => setRefused(null) };
}

function reasonOf(edit: Edit, unsaved: Unsaved): string {
  return "reason" in unsaved ? unsaved.reason : changeText(edit, unsaved);
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
 * What was typed, and a question. Enter saves the corrected value if the server rejected the first
 * one. It does not overwrite another user's value: pressing Enter twice would overwrite it unseen.
 */
export function RefusedEditor({ label, refused, onSave, onCancel }: RefusedProps) {
  const { edit } = refused;
  const [text, setText] = useState(() => editableText(edit.value));
  const noteId = useId();
  const isRejected = "reason" in refused;
  function save() {
    const value = typedValue(text, edit.before);
    onSave(
      "reason" in refused
        ? { ...edit, value }
        : { ...edit, before: refused.current, value, conflicting: refused.conflicting },
    );
  }
  return (
    <>
      <input
        className="cell-editor"
        aria-label={label}
        aria-describedby={noteId}
        aria-invalid={isRejected}
        // biome-ignore lint/a11y/noAutofocus: the user is asked about this value.
        autoFocus
        value={text}
        onClick={stopAtCell}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          event.stopPropagation();
          if (event.key === "Escape") onCancel();
          if (event.key === "Enter" && isRejected) save();
        }}
      />
      <span className="cell-question" id={noteId} role="alert">
        {reasonOf(edit, refused)}
        <Answer text={isRejected ? "Save" : "Overwrite"} onChoose={save} />
        <Answer text={isRejected ? "Discard" : "Reload"} onChoose={onCancel} />
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
