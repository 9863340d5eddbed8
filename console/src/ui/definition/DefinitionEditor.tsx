/** A definition as a form and as JSON, beside a preview of what it means. */

import type { ReactNode } from "react";
import { Segments } from "../Field";
import { Icon } from "../Icon";
import { JsonEditor } from "../JsonEditor";
import { ValidationErrors } from "../ValidationErrors";
import { isObject, type Json, type JsonObject } from "./exactJson";
import { FormProvider } from "./parts";
import type { Definition, View } from "./useDefinition";
import "./definition.css";

interface EditorProps {
  readonly definition: Definition;
  readonly label: string;
  readonly mayChange: boolean;
  readonly height?: string;
  /** Whether unsaved changes are marked; a dialog asks before it drops them. */
  readonly marksChanges?: boolean;
  /** Called by Ctrl-Enter and Ctrl-S in the JSON editor. */
  readonly onSubmit?: () => void;
  /** Stands beside the switch between form and JSON. */
  readonly tools?: ReactNode;
  readonly preview?: ReactNode;
  /** Shows the form of the definition. */
  readonly children: (value: Json) => ReactNode;
}

const VIEWS: readonly (readonly [View, string])[] = [
  ["form", "Form"],
  ["json", "JSON"],
];

export function DefinitionEditor(props: EditorProps) {
  const { definition, label, mayChange, marksChanges = true, tools, preview } = props;
  return (
    <div className={preview === undefined ? "definition" : "definition with-preview"}>
      <section className="definition-main" aria-label={label}>
        <div className="definition-bar">
          <Segments
            label={`${label} as`}
            options={VIEWS}
            value={definition.view}
            onChange={definition.show}
          />
          {definition.isChanged && marksChanges && <span className="badge warn">not saved</span>}
          <span className="definition-tools">{tools}</span>
        </div>
        <FormProvider definition={definition} mayChange={mayChange}>
          {definition.view === "json" ? <JsonView {...props} /> : <FormView {...props} />}
        </FormProvider>
      </section>
      {preview !== undefined && <aside className="definition-preview">{preview}</aside>}
    </div>
  );
}

function JsonView({ definition, label, mayChange, height = "420px", onSubmit }: EditorProps) {
  const parts = Object.keys(definition.unfinished);
  return (
    <>
      <JsonEditor
        label={label}
        value={definition.text}
        height={height}
        validationErrors={definition.validationErrors}
        {...(definition.shownPart === null ? {} : { shownPart: definition.shownPart })}
        {...(mayChange ? { onChange: definition.setText } : {})}
        {...(mayChange && onSubmit !== undefined ? { onSubmit } : {})}
      />
      {parts.length > 0 && (
        <p className="notice warn">
          <Icon name="alert" />
          <span>
            {parts.length === 1 ? "One field" : `${parts.length} fields`} of the form{" "}
            {parts.length === 1 ? "is" : "are"} not valid yet and not part of this JSON.
          </span>
        </p>
      )}
    </>
  );
}

function FormView({ definition, children }: EditorProps) {
  const { obstacle, value } = definition;
  const isFit = value === null || isObject(value);
  if (obstacle !== null || !isFit) {
    return (
      <div className="notice warn" role="status">
        <Icon name="alert" />
        <span className="grow">{obstacle ?? "The definition is not a JSON object."}</span>
        <button type="button" className="button small" onClick={() => definition.show("json")}>
          Edit as JSON
        </button>
      </div>
    );
  }
  return <div className="definition-form">{children(value)}</div>;
}

interface FootProps {
  readonly definition: Definition;
  readonly onSave: () => void;
}

/** Saves or discards the changes of a page, and lists what is wrong with them. */
export function DefinitionFoot({ definition, onSave }: FootProps) {
  const { isChanged, isOutdated, validationErrors } = definition;
  return (
    <>
      <ValidationErrors validationErrors={validationErrors} />
      {isOutdated && (
        <p className="notice warn" role="status">
          <Icon name="alert" />
          Someone else has changed this since you began. Saving replaces their changes.
        </p>
      )}
      {isChanged && (
        <div className="definition-foot">
          <span className="soft">You have unsaved changes.</span>
          <button type="button" className="button" onClick={definition.discard}>
            Discard
          </button>
          <button type="button" className="button main" onClick={onSave}>
            Save
          </button>
        </div>
      )}
    </>
  );
}

/** Returns the object that a form shows; anything else can only be replaced by one. */
export function objectOf(value: Json): JsonObject {
  return isObject(value) ? value : {};
}
