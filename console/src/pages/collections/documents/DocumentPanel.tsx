/** One live document beside the grid: a tree, or JSON to edit. */

import { useEffect, useMemo, useState } from "react";
import { type Collection as Documents, parseTyped, ServerError } from "rillbase";
import { useQuery as useLive } from "rillbase/react";
import { failureOf } from "../../../api/failure";
import { CopyButton } from "../../../ui/Code";
import { Segments } from "../../../ui/Field";
import { Icon } from "../../../ui/Icon";
import { JsonEditor, type ValidationError } from "../../../ui/JsonEditor";
import { useToasts } from "../../../ui/toasts";
import { ValidationErrors } from "../../../ui/ValidationErrors";
import type { DocumentView } from "./gridAddress";
import type { Row } from "./useLiveDocuments";
import type { Writes } from "./useWrites";
import { ValueTree } from "./ValueTree";
import { hasAwkwardNames, idText, keyOf, prettyText, updateBetween } from "./values";
import "../../../ui/panel.css";
import "./panel.css";

type Plain = Record<string, unknown>;

const VIEWS: readonly (readonly [DocumentView, string])[] = [
  ["tree", "Tree"],
  ["json", "JSON"],
];

interface PanelProps {
  readonly documents: Documents<Plain>;
  readonly id: unknown;
  readonly view: DocumentView;
  readonly mayWrite: boolean;
  readonly onView: (view: DocumentView) => void;
  readonly onSave: Writes["save"];
  readonly onDelete: (row: Row) => void;
  readonly onClose: () => void;
}

export function DocumentPanel(props: PanelProps) {
  const { documents, id, view, mayWrite, onView, onSave, onDelete, onClose } = props;
  const { items, isLoading } = useLive(useMemo(() => documents.doc(id).query, [documents, id]));
  const item = items[0];
  const title = idText(id);
  return (
    <section className="panel" aria-label={`Document ${title}`}>
      <header>
        <div className="what">
          <strong className="mono cut" title={title}>
            {title}
          </strong>
          <CopyButton text={keyOf(id)} label="Copy the id" />
          {item?.version !== undefined && <span className="badge">v{item.version}</span>}
        </div>
        <div className="tools">
          <Segments label="View" options={VIEWS} value={view} onChange={onView} />
          {mayWrite && item !== undefined && (
            <button
              type="button"
              className="button small icon plain"
              aria-label="Delete the document"
              onClick={() => onDelete(item as Row)}
            >
              <Icon name="trash" size={14} />
            </button>
          )}
          <CloseButton onClick={onClose} />
        </div>
      </header>
      <div className="panel-body">
        {item === undefined && !isLoading && (
          <p className="soft pad">The document has been deleted.</p>
        )}
        {item !== undefined && view === "tree" && (
          <ValueTree
            value={item.document}
            path=""
            mayWrite={mayWrite}
            onSave={(edit) => onSave(item as Row, edit)}
          />
        )}
        {item !== undefined && view === "json" && (
          <JsonView
            documents={documents}
            document={item.document as Plain}
            version={item.version}
            mayWrite={mayWrite}
          />
        )}
      </div>
    </section>
  );
}

function CloseButton({ onClick }: { readonly onClick: () => void }) {
  return (
    <button type="button" className="button small icon plain" aria-label="Close" onClick={onClick}>
      <Icon name="close" size={14} />
    </button>
  );
}

interface JsonViewProps {
  readonly documents: Documents<Plain>;
  readonly document: Plain;
  readonly version: number | null;
  readonly mayWrite: boolean;
}

function JsonView({ documents, document, version, mayWrite }: JsonViewProps) {
  const [base, setBase] = useState({ document, version });
  const [text, setText] = useState(() => prettyText(document));
  const [validationErrors, setValidationErrors] = useState<readonly ValidationError[]>([]);
  const { showMessage } = useToasts();
  const isChanged = text !== prettyText(base.document);
  const isBehind = version !== base.version;
  useEffect(() => {
    // An unchanged draft follows the document.
    if (isChanged || !isBehind) return;
    setBase({ document, version });
    setText(prettyText(document));
  }, [isChanged, isBehind, document, version]);

  async function save() {
    try {
      await write(documents, base, text);
      setValidationErrors([]);
      const written = parseTyped(text) as Plain;
      setBase({ document: written, version: null });
      setText(prettyText(written));
      showMessage("Saved.");
    } catch (error) {
      setValidationErrors(validationErrorsOf(error));
    }
  }
  return (
    <div className="json-view">
      <JsonEditor
        label="The document as JSON"
        value={text}
        height="100%"
        validationErrors={validationErrors}
        {...(mayWrite ? { onChange: setText, onSubmit: save } : {})}
      />
      <ValidationErrors validationErrors={validationErrors} />
      {isChanged && (
        <footer>
          {isBehind && base.version !== null && (
            <span className="badge warn" title="Only your changes will be written.">
              changed by someone else
            </span>
          )}
          <button
            type="button"
            className="button small"
            onClick={() => setText(prettyText(base.document))}
          >
            Discard
          </button>
          <button type="button" className="button small main" onClick={save}>
            Save <kbd>Ctrl ↵</kbd>
          </button>
        </footer>
      )}
    </div>
  );
}

async function write(
  documents: Documents<Plain>,
  base: { document: Plain; version: number | null },
  text: string,
) {
  const after = parseTyped(text) as Plain;
  if (typeof after !== "object" || after === null || Array.isArray(after)) {
    throw new SyntaxError("A document must be an object.");
  }
  const id = base.document._id;
  if (hasAwkwardNames(after) || hasAwkwardNames(base.document)) {
    const condition = base.version === null ? {} : { ifVersion: base.version };
    await documents.replace(id, { ...after, _id: id }, condition);
    return;
  }
  const update = updateBetween(base.document, after);
  if (update !== null) await documents.update(id, update);
}

/** The server's pointers refer to the update; the editor shows the document. */
function validationErrorsOf(error: unknown): ValidationError[] {
  if (error instanceof ServerError && error.places.length > 0) {
    return error.places.map(({ pointer, detail }) => ({
      pointer: pointer.replace(/^\/(\$set\/|document\/)?/, "/"),
      message: detail,
    }));
  }
  return [{ pointer: "", message: failureOf(error).summary }];
}
