/** Changes many documents at once: the selected ones, or all that match. */

import { useState } from "react";
import { parseTyped, printTyped } from "rillbase";
import { FormDialog } from "../../../ui/Dialog";
import { Field, Segments } from "../../../ui/Field";
import { JsonEditor } from "../../../ui/JsonEditor";
import { typedValue } from "./values";

type Plain = Record<string, unknown>;

interface BulkEditProps {
  /** What is changed, in words: "3 documents". */
  readonly whom: string;
  readonly fields: readonly string[];
  readonly onApply: (update: Plain) => Promise<void>;
  readonly onClose: () => void;
}

export function BulkEdit({ whom, fields, onApply, onClose }: BulkEditProps) {
  const [mode, setMode] = useState<"field" | "update">("field");
  const [field, setField] = useState(fields.find((name) => name !== "_id") ?? "");
  const [value, setValue] = useState("");
  const [text, setText] = useState('{\n  "$set": {}\n}');
  async function apply() {
    const update =
      mode === "field"
        ? { $set: { [field]: typedValue(value, undefined) } }
        : (parseTyped(text) as Plain);
    await onApply(update);
  }
  return (
    <FormDialog
      title={`Change ${whom}`}
      action="Change"
      canSubmit={mode === "update" || field !== ""}
      onSubmit={apply}
      onClose={onClose}
    >
      <Segments
        label="Kind of change"
        options={[
          ["field", "Set a field"],
          ["update", "Update operators"],
        ]}
        value={mode}
        onChange={setMode}
      />
      {mode === "field" ? (
        <>
          <Field label="Field">
            <input
              className="input mono"
              list="bulk-fields"
              value={field}
              onChange={(event) => setField(event.target.value)}
            />
          </Field>
          <datalist id="bulk-fields">
            {fields.map((name) => (
              <option key={name} value={name} />
            ))}
          </datalist>
          <Field label="Value" hint={`It is stored as ${printTyped(typedValue(value, undefined))}`}>
            <input
              className="input mono"
              value={value}
              onChange={(event) => setValue(event.target.value)}
            />
          </Field>
        </>
      ) : (
        <JsonEditor label="Update" value={text} onChange={setText} height="180px" />
      )}
    </FormDialog>
  );
}
