/** The dialog that creates something of a tenant by its definition, and then opens its page. */

import { type ReactNode, useState } from "react";
import { useLocation } from "wouter";
import { useDialogDraft } from "../../api/drafts";
import { useChange } from "../../api/list";
import { useTenant } from "../../api/tenant";
import { DefinitionDialog } from "./DefinitionDialog";
import { objectOf } from "./DefinitionEditor";
import { formatJson, type Json, type JsonObject } from "./exactJson";
import type { DefinitionFormProps } from "./forms";
import { useDefinition } from "./useDefinition";

interface NewDefinitionProps {
  readonly kind: "aggregate" | "dataset" | "topic";
  readonly lead: string;
  /** From which the definition starts. */
  readonly start: JsonObject;
  /** Shows what the definition means; it is undefined while its JSON has an error. */
  readonly preview: (name: string, value: Json | undefined) => ReactNode;
  readonly form: (props: DefinitionFormProps) => ReactNode;
  readonly onClose: () => void;
}

export function NewDefinition({ kind, lead, start, preview, form, onClose }: NewDefinitionProps) {
  const { slug } = useTenant();
  const segment = `${kind}s`;
  const change = useChange(segment);
  const [, go] = useLocation();
  const [base] = useState(() => formatJson(start));
  const definition = useDefinition({ base, member: "", held: useDialogDraft() });
  const { name } = objectOf(definition.value ?? null);
  return (
    <DefinitionDialog
      title={`New ${kind}`}
      lead={lead}
      action={`Create ${kind}`}
      definition={definition}
      preview={preview(typeof name === "string" ? name : "", definition.value)}
      onSave={async (body) => {
        const made = await change<{ readonly name: string }>(segment, { method: "POST", body });
        go(`/t/${slug}/${segment}/${made.name}`);
      }}
      onClose={onClose}
    >
      {(value) => form({ definition: objectOf(value), onChange: definition.setValue })}
    </DefinitionDialog>
  );
}
