/**
 * CodeMirror in a shadow root: there it adopts its style sheets, while in the page itself it would
 * add inline styles, which the console's content security policy rejects.
 */

import { closeBrackets, closeBracketsKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { json, jsonParseLinter } from "@codemirror/lang-json";
import { bracketMatching, indentOnInput } from "@codemirror/language";
import { type Diagnostic, linter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { Annotation, Compartment, EditorState, type Extension } from "@codemirror/state";
import { EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { useEffect, useRef } from "react";
import { flushSync } from "react-dom";
import type { JsonEditorProps, LineError } from "../JsonEditor";
import { rangeOf } from "./pointer";
import { colours } from "./theme";

const NONE: readonly LineError[] = [];

export default function CodeMirror(props: JsonEditorProps) {
  const { value, label, support, validationErrors = [], lineErrors = NONE, shownPart } = props;
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const supported = useRef(new Compartment());
  const latest = useRef(props);
  latest.current = props;

  // biome-ignore lint/correctness/useExhaustiveDependencies: later values are dispatched below.
  useEffect(() => {
    if (host.current === null) return;
    const root = host.current.shadowRoot ?? host.current.attachShadow({ mode: "open" });
    const made = new EditorView({
      root,
      parent: root as unknown as Element,
      state: EditorState.create({
        doc: value,
        extensions: extensions(label, latest, supported.current),
      }),
    });
    view.current = made;
    return () => made.destroy();
  }, []);

  useEffect(() => {
    const editor = view.current;
    if (editor === null || editor.state.doc.toString() === value) return;
    editor.dispatch({
      changes: { from: 0, to: editor.state.doc.length, insert: value },
      annotations: fromOutside.of(true),
    });
  }, [value]);

  useEffect(() => {
    view.current?.dispatch({ effects: supported.current.reconfigure(support ?? []) });
  }, [support]);

  useEffect(() => {
    const editor = view.current;
    if (editor === null) return;
    const text = editor.state.doc.toString();
    const shown = validationErrors.map(({ pointer, message }): Diagnostic => {
      const { from, to } = rangeOf(text, pointer);
      return { from, to, message, severity: "error" };
    });
    const inLines = lineErrors.map((error) => lineDiagnostic(editor.state, error));
    editor.dispatch(setDiagnostics(editor.state, [...shown, ...inLines]));
  }, [validationErrors, lineErrors]);

  useEffect(() => {
    const editor = view.current;
    if (editor === null || shownPart === undefined) return;
    const { from, to } = rangeOf(editor.state.doc.toString(), shownPart);
    editor.focus();
    editor.dispatch({
      selection: { anchor: from, head: to },
      effects: EditorView.scrollIntoView(from, { y: "center" }),
    });
  }, [shownPart]);

  return <div ref={host} className="editor-host" />;
}

/** Marks the word at a column, or the text of a line. */
function lineDiagnostic({ doc }: EditorState, { line, column, message }: LineError): Diagnostic {
  const { from, text } = doc.line(Math.min(line, doc.lines));
  const start = column === null ? text.search(/\S|$/) : Math.min(column - 1, text.length);
  const [marked = ""] = /^(?:"[^"]*"?|\w+|.)/.exec(text.slice(start)) ?? [];
  const length = column === null ? text.length - start : marked.length;
  return { from: from + start, to: from + start + length, message, severity: "error" };
}

/** Marks changes that the page has made, and that it need not be told. */
const fromOutside = Annotation.define<boolean>();

function extensions(
  label: string,
  latest: { current: JsonEditorProps },
  supported: Compartment,
): Extension {
  const { language = "json", onChange, support = [] } = latest.current;
  const submit = ({ root }: EditorView) => {
    if (latest.current.onSubmit === undefined) return submitForm(root);
    latest.current.onSubmit();
    return true;
  };
  return [
    lineNumbers(),
    history(),
    indentOnInput(),
    bracketMatching(),
    closeBrackets(),
    highlightActiveLine(),
    EditorView.lineWrapping,
    EditorState.tabSize.of(2),
    EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
    EditorState.readOnly.of(onChange === undefined),
    keymap.of([
      { key: "Mod-Enter", run: submit },
      { key: "Mod-s", run: submit },
      ...closeBracketsKeymap,
      ...defaultKeymap,
      ...historyKeymap,
      ...lintKeymap,
      // Escape, then Tab, leaves the editor.
      indentWithTab,
    ]),
    supported.of(support),
    language === "json" ? [json(), linter(lintJson, { delay: 400 })] : [],
    EditorView.updateListener.of((update) => {
      const isTyped = !update.transactions.some((one) => one.annotation(fromOutside));
      // At once: a value that is shown late would be put over what has been typed meanwhile.
      if (update.docChanged && isTyped)
        flushSync(() => latest.current.onChange?.(update.state.doc.toString()));
    }),
    colours,
  ];
}

/** Submits the form around an editor, unless its button is disabled. */
function submitForm(root: DocumentOrShadowRoot): boolean {
  const form = root instanceof ShadowRoot ? root.host.closest("form") : null;
  const button = form?.querySelector<HTMLButtonElement>("button[type=submit]");
  if (!button) return false;
  if (!button.disabled) form?.requestSubmit(button);
  return true;
}

const parseLinter = jsonParseLinter();

/** An empty text is no mistake yet. */
function lintJson(view: EditorView): readonly Diagnostic[] {
  return view.state.doc.toString().trim() === "" ? [] : parseLinter(view);
}
