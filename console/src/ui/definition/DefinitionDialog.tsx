/** A dialog that creates or changes something by its definition. */

import type { ReactNode } from "react";
import { FormDialog } from "../Dialog";
import { DefinitionEditor } from "./DefinitionEditor";
import type { Json } from "./exactJson";
import type { Definition } from "./useDefinition";

interface DefinitionDialogProps {
  readonly title: string;
  readonly lead?: ReactNode;
  /** What the button says. */
  readonly action: string;
  readonly definition: Definition;
  readonly preview: ReactNode;
  readonly onSave: (value: Json) => Promise<unknown>;
  readonly onClose: () => void;
  /** Shows the form. */
  readonly children: (value: Json) => ReactNode;
}

export function DefinitionDialog(props: DefinitionDialogProps) {
  const { definition, preview, onSave, children, ...dialog } = props;
  return (
    <FormDialog
      {...dialog}
      size="large"
      isChanged={definition.isChanged}
      onSubmit={() => definition.submit(onSave)}
    >
      <DefinitionEditor
        definition={definition}
        label="Definition"
        mayChange
        marksChanges={false}
        height="400px"
        preview={preview}
      >
        {children}
      </DefinitionEditor>
    </FormDialog>
  );
}
