/**
 * Shows a secret once. Escape closes the dialog only if the secret was copied, or on a second
 * press.
 */

import { useState } from "react";
import type { NewApiKey } from "../../api/types";
import { Code } from "../../ui/Code";
import { Dialog } from "../../ui/Dialog";

interface SecretProps {
  readonly apiKey: Pick<NewApiKey, "name" | "secret"> & Partial<Pick<NewApiKey, "key">>;
  readonly onClose: () => void;
}

export function SecretDialog({ apiKey: { name, secret, key }, onClose }: SecretProps) {
  const [isCopied, setCopied] = useState(false);
  const text = key ?? secret ?? "";
  const lead = key
    ? "It is not a secret: you can view it at any time."
    : "Store it in a safe place. It is shown only once.";
  return (
    <Dialog
      title={name}
      lead={lead}
      unsaved={key || isCopied ? null : "The key was not copied, and it cannot be shown again."}
      onClose={onClose}
    >
      <div className="body">
        <Code text={text} label={`The key ${name}`} onCopied={() => setCopied(true)} />
      </div>
      <footer>
        <button type="button" className="button main" onClick={onClose}>
          Done
        </button>
      </footer>
    </Dialog>
  );
}
