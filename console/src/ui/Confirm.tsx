/** Asks for confirmation before an irreversible action. */

import { type ReactNode, useState } from "react";
import { FormDialog } from "./Dialog";
import { Field } from "./Field";

interface ConfirmProps {
  readonly title: string;
  readonly children: ReactNode;
  readonly action: string;
  /** Text that must be typed to confirm a dangerous action. */
  readonly typed?: string;
  readonly onConfirm: () => Promise<unknown>;
  readonly onClose: () => void;
}

export function Confirm({ title, children, action, typed, onConfirm, onClose }: ConfirmProps) {
  const [text, setText] = useState("");
  return (
    <FormDialog
      title={title}
      action={action}
      danger
      canSubmit={typed === undefined || text === typed}
      onSubmit={onConfirm}
      onClose={onClose}
    >
      <div className="soft">{children}</div>
      {typed !== undefined && (
        <Field label={`To confirm, enter “${typed}”`}>
          <input
            className="input mono"
            autoComplete="off"
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
        </Field>
      )}
    </FormDialog>
  );
}
