/** The button that saves a query with its chart, and its dialog. */

import { useState } from "react";
import { useTenant } from "../api/tenant";
import type { SavedQuery } from "../api/types";
import { FormDialog } from "../ui/Dialog";
import { Field, Segments } from "../ui/Field";
import { Icon } from "../ui/Icon";
import { useToasts } from "../ui/toasts";
import { type Draft, LAST_PIN, useSavedQueryChanges } from "./useSavedQueries";

interface SaveQueryProps {
  /** The current query; null if there is none to save. Throws an error if it is invalid. */
  readonly draft: (() => Draft) | null;
  /** The saved query that it was opened from or last saved as. */
  readonly saved: SavedQuery | null;
  readonly onSaved: (saved: SavedQuery) => void;
  readonly className?: string;
}

export function SaveQuery({ draft, saved, onSaved, className = "button" }: SaveQueryProps) {
  const { may } = useTenant();
  const [isOpen, setOpen] = useState(false);
  if (!may("developer")) return null;
  return (
    <>
      <button
        type="button"
        className={className}
        aria-label="Save query"
        disabled={draft === null}
        onClick={() => setOpen(true)}
      >
        <Icon name="bookmark" size={13} /> <span className="roomy-only">Save</span>
      </button>
      {isOpen && draft !== null && (
        <SaveDialog draft={draft} saved={saved} onSaved={onSaved} onClose={() => setOpen(false)} />
      )}
    </>
  );
}

type Target = "same" | "new";

interface SaveDialogProps extends SaveQueryProps {
  readonly draft: () => Draft;
  readonly onClose: () => void;
}

function SaveDialog({ draft, saved, onSaved, onClose }: SaveDialogProps) {
  const { create, update } = useSavedQueryChanges();
  const { showMessage } = useToasts();
  const [target, setTarget] = useState<Target>(saved === null ? "new" : "same");
  const [name, setName] = useState(saved?.name ?? "");
  const [isPinned, setPinned] = useState(saved !== null && saved.pin !== null);
  async function save() {
    const { kind, ...query } = draft();
    const members = { name: name.trim(), ...query };
    const pin = isPinned ? (target === "same" ? (saved?.pin ?? LAST_PIN) : LAST_PIN) : null;
    const made =
      saved !== null && target === "same"
        ? await update(saved.id, { ...members, pin })
        : await create({ kind, ...members, pin });
    onSaved(made);
    showMessage(`${made.name} saved.`);
  }
  return (
    <FormDialog
      title="Save query"
      lead="All members of the tenant can open it, from Saved queries and from the search."
      action="Save"
      canSubmit={name.trim() !== ""}
      onSubmit={save}
      onClose={onClose}
    >
      {saved !== null && (
        <Segments
          label="Save as"
          options={[
            ["same", `Change ${saved.name}`],
            ["new", "New query"],
          ]}
          value={target}
          onChange={setTarget}
        />
      )}
      <Field label="Name">
        <input
          className="input"
          autoComplete="off"
          maxLength={100}
          value={name}
          onChange={(event) => setName(event.target.value)}
        />
      </Field>
      <label className="check">
        <input
          type="checkbox"
          checked={isPinned}
          onChange={(event) => setPinned(event.target.checked)}
        />
        Pin to the overview
      </label>
    </FormDialog>
  );
}
