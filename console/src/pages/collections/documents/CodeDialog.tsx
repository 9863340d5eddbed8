/** Shows the query as code. */

import { useState } from "react";
import type { Group, Lookup } from "rillbase";
import { Code } from "../../../ui/Code";
import { Dialog } from "../../../ui/Dialog";
import { Segments } from "../../../ui/Field";
import type { GridQuery } from "./gridQuery";
import { LANGUAGES, type Language, snippet } from "./snippets";

interface CodeDialogProps {
  readonly collection: string;
  readonly filter: Record<string, unknown>;
  readonly sort: GridQuery["sort"];
  readonly group?: Group | undefined;
  readonly lookup?: readonly Lookup[] | undefined;
  readonly onClose: () => void;
}

export function CodeDialog({ onClose, ...wanted }: CodeDialogProps) {
  const [language, setLanguage] = useState<Language>("JavaScript");
  return (
    <Dialog title="Query as code" wide onClose={onClose}>
      <div className="body">
        <Segments
          label="Language"
          options={LANGUAGES.map((name) => [name, name] as const)}
          value={language}
          onChange={setLanguage}
        />
        <Code
          text={snippet(language, { url: location.origin, ...wanted })}
          label={`${language} code`}
        />
      </div>
      <footer>
        <button type="button" className="button" onClick={onClose}>
          Close
        </button>
      </footer>
    </Dialog>
  );
}
