/** The editor of JSON and other code; its code is loaded when the first one is shown. */

import type { Extension } from "@codemirror/state";
import { lazy, Suspense } from "react";

export interface ValidationError {
  /** A JSON pointer; "" is the whole text. */
  readonly pointer: string;
  readonly message: string;
}

/** An error at a line of the text, counted from 1. */
export interface LineError {
  readonly line: number;
  /** Counted from 1; null: the whole line. */
  readonly column: number | null;
  readonly message: string;
}

export interface JsonEditorProps {
  readonly label: string;
  readonly value: string;
  readonly onChange?: (text: string) => void;
  /** Called by Ctrl-Enter and Ctrl-S, which otherwise submit the form around the editor. */
  readonly onSubmit?: () => void;
  /** The server's validation errors. */
  readonly validationErrors?: readonly ValidationError[];
  readonly lineErrors?: readonly LineError[];
  /** The JSON pointer to a part that is selected and scrolled into view. */
  readonly shownPart?: string;
  readonly language?: "json" | "plain";
  /** Further editor extensions: another language, completion. */
  readonly support?: Extension;
  readonly height?: string;
}

const Loaded = lazy(() => import("./editor/CodeMirror"));

export function JsonEditor(props: JsonEditorProps) {
  const { height = "220px", value } = props;
  return (
    <div className="editor" style={{ height }}>
      <Suspense fallback={<pre>{value}</pre>}>
        <Loaded {...props} />
      </Suspense>
    </div>
  );
}
