/** The editor's theme. The page's custom properties are available in the shadow root. */

import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { EditorView } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const looks = EditorView.theme({
  "&": {
    height: "100%",
    color: "var(--ink)",
    backgroundColor: "var(--surface)",
    fontSize: "12.5px",
  },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.6" },
  ".cm-content": { caretColor: "var(--accent)", padding: "10px 0" },
  ".cm-cursor": { borderLeftColor: "var(--accent)" },
  ".cm-gutters": {
    backgroundColor: "var(--surface)",
    color: "var(--faint)",
    border: "none",
    paddingLeft: "4px",
  },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--sunken)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground, ::selection": {
    backgroundColor: "light-dark(#bfe6ea, #1d5a66) !important",
  },
  "&.cm-focused .cm-matchingBracket": {
    backgroundColor: "var(--chosen)",
    outline: "1px solid var(--line-strong)",
  },
  ".cm-tooltip": {
    border: "1px solid var(--line-strong)",
    borderRadius: "7px",
    backgroundColor: "var(--raised)",
    color: "var(--ink)",
  },
  // The usual marks are images in `data:` addresses, which the console's policy refuses.
  ".cm-lintRange-error, .cm-lintRange-warning": {
    backgroundImage: "none",
    textDecoration: "underline wavy var(--bad)",
    textUnderlineOffset: "3px",
  },
  ".cm-lintRange-warning": { textDecorationColor: "var(--warn)" },
  ".cm-diagnostic": { fontFamily: "var(--sans)" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", maxHeight: "15em" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "2px 8px" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": {
    background: "var(--chosen)",
    color: "var(--ink)",
  },
  ".cm-completionDetail": { color: "var(--soft)", fontStyle: "normal" },
  ".cm-completionInfo": { maxWidth: "320px", padding: "6px 10px", fontFamily: "var(--sans)" },
});

const syntax = HighlightStyle.define([
  { tag: tags.propertyName, color: "var(--name)" },
  { tag: tags.string, color: "var(--string)" },
  { tag: tags.special(tags.string), color: "var(--ink)" },
  { tag: tags.number, color: "var(--number)" },
  { tag: [tags.bool, tags.null, tags.keyword, tags.definitionKeyword], color: "var(--keyword)" },
  { tag: [tags.variableName, tags.modifier], color: "var(--accent)" },
  { tag: tags.typeName, color: "var(--name)" },
  { tag: [tags.standard(tags.name), tags.special(tags.name)], color: "var(--accent)" },
  { tag: tags.comment, color: "var(--soft)", fontStyle: "italic" },
  { tag: [tags.punctuation, tags.separator], color: "var(--soft)" },
]);

export const colours = [looks, syntaxHighlighting(syntax)];
