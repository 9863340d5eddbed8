/** The dialog that changes the definition of something that exists. */

import { type ReactNode, useState } from "react";
import { useDialogDraft } from "../../api/drafts";
import { useToasts } from "../toasts";
import { DefinitionDialog } from "./DefinitionDialog";
import { objectOf } from "./DefinitionEditor";
import { formatJson, type Json, type JsonObject } from "./exactJson";
import type { DefinitionFormProps } from "./forms";
import { useDefinition } from "./useDefinition";

interface EditDefinitionProps {
  readonly name: string;
  readonly lead: string;
  /** The members that can be changed, as they are saved. */
  readonly saved: JsonObject;
  /** What is said once the change is saved. */
  readonly done: string;
  readonly preview: (value: Json | undefined) => ReactNode;
  readonly form: (props: DefinitionFormProps) => ReactNode;
  readonly onSave: (change: JsonObject) => Promise<unknown>;
  readonly onClose: () => void;
}

export function EditDefinition(props: EditDefinitionProps) {
  const { name, lead, saved, done, preview, form, onSave, onClose } = props;
  const { showMessage } = useToasts();
  const [base] = useState(() => formatJson(saved));
  const definition = useDefinition({ base, member: "", held: useDialogDraft() });
  return (
    <DefinitionDialog
      title={`Change ${name}`}
      lead={lead}
      action="Save"
      definition={definition}
      preview={preview(definition.value)}
      onSave={async (value) => {
        await onSave(objectOf(value));
        showMessage(done);
      }}
      onClose={onClose}
    >
      {(value) => form({ definition: objectOf(value), onChange: definition.setValue })}
    </DefinitionDialog>
  );
}
