/** Saves a definition and reports it. */

import { useToasts } from "../toasts";
import type { Json } from "./exactJson";
import type { Definition } from "./useDefinition";

export function useSaving(
  definition: Definition,
  label: string,
  save: (value: Json) => Promise<unknown>,
): () => void {
  const { showMessage } = useToasts();
  // The editor shows the error.
  return () =>
    void definition.submit(save).then(
      () => showMessage(`${label} saved.`),
      () => {},
    );
}
