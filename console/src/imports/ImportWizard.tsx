/** Imports a file: choose it, map its columns, look at the first documents, import. */

import { Dialog } from "../ui/Dialog";
import { ErrorNotice } from "../ui/ErrorNotice";
import { UploadProgress } from "../ui/UploadProgress";
import { FileChoice } from "./FileChoice";
import { recordNoun } from "./files";
import { ImportResult } from "./ImportResult";
import { Mapping } from "./Mapping";
import { PreviewTable } from "./PreviewTable";
import type { ImportOutcome, ImportTarget } from "./target";
import { useImport } from "./useImport";
import { useWizard, type Wizard } from "./useWizard";
import { useWritten } from "./useWritten";
import "./imports.css";

interface WizardProps<T> {
  readonly target: ImportTarget;
  /** Reads the server's answer. */
  readonly outcomeOf: (answer: T) => ImportOutcome;
  readonly onClose: () => void;
}

export function ImportWizard<T>({ target, outcomeOf, onClose }: WizardProps<T>) {
  const wizard = useWizard(target);
  const running = useImport(target, outcomeOf);
  const { progress, outcome, failure, isCancelled } = running;
  const noun = recordNoun(wizard.dialect?.format);
  const written = useWritten(target.progressPath, progress, wizard.preview?.rows);
  return (
    <Dialog
      title={target.title}
      lead={target.lead}
      wide
      unsaved={progress === null ? null : "The import is still running."}
      onClose={onClose}
    >
      <div className="body import">
        {outcome !== null && <ImportResult outcome={outcome} noun={noun} />}
        {outcome === null && progress === null && <Choices wizard={wizard} target={target} />}
        {progress !== null && (
          <UploadProgress progress={progress} rest={target.rest} written={written} />
        )}
        {isCancelled && progress === null && (
          <p className="notice warn" role="status">
            The import was cancelled. {target.cancelled}
          </p>
        )}
        {failure !== null && failure.file === wizard.file && <ErrorNotice error={failure.error} />}
      </div>
      <Foot action={target.action} wizard={wizard} running={running} onClose={onClose} />
    </Dialog>
  );
}

interface ChoicesProps {
  readonly wizard: Wizard;
  readonly target: ImportTarget;
}

function Choices({ wizard, target }: ChoicesProps) {
  const { file, choices, preview, error, problem } = wizard;
  return (
    <>
      <FileChoice wizard={wizard} formats={target.formats} />
      {file !== null && target.options}
      {error !== null && <ErrorNotice error={error} />}
      {choices !== null && <Mapping wizard={wizard} fields={target.fields} choices={choices} />}
      {problem !== null && (
        <p className="notice warn" role="alert">
          {problem}
        </p>
      )}
      {preview !== null && problem === null && error === null && (
        <PreviewTable preview={preview} noun={recordNoun(wizard.dialect?.format)} />
      )}
    </>
  );
}

interface FootProps {
  readonly action: string;
  readonly wizard: Wizard;
  readonly running: ReturnType<typeof useImport>;
  readonly onClose: () => void;
}

function Foot({ action, wizard, running, onClose }: FootProps) {
  const { file, dialect, delimiter, columns, canImport } = wizard;
  const { progress, outcome, send, cancel } = running;
  if (progress !== null) {
    return (
      <footer>
        <button type="button" className="button" onClick={cancel}>
          Cancel
        </button>
      </footer>
    );
  }
  return (
    <footer>
      <button type="button" className="button" onClick={onClose}>
        {outcome === null ? "Cancel" : "Close"}
      </button>
      {outcome === null && (
        <button
          type="button"
          className="button main"
          disabled={!canImport}
          onClick={() =>
            file !== null && dialect !== null && send({ file, dialect, delimiter, columns })
          }
        >
          {action}
        </button>
      )}
    </footer>
  );
}
