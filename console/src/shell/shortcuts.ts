/** The keyboard shortcuts, as the help and the footers list them. */

export type Shortcut = readonly [keys: string, action: string];

export const GRID_SHORTCUTS: readonly Shortcut[] = [
  ["↑↓←→", "move"],
  ["Enter", "edit"],
  ["Space", "open"],
  ["X", "select"],
];

export const SHORTCUTS: readonly (readonly [area: string, shortcuts: readonly Shortcut[]])[] = [
  [
    "Everywhere",
    [
      ["Ctrl K", "search pages, collections, tenants and commands"],
      ["?", "show this list"],
      ["Esc", "close a dialog or a menu"],
    ],
  ],
  ["Documents", [...GRID_SHORTCUTS, ["PgUp PgDn", "move by 20 rows"]]],
  ["Editors", [["Ctrl Enter", "run or save"]]],
];

const TYPING = "input, textarea, select, [contenteditable], dialog";

/** Returns whether a pressed key asks for the help, rather than being typed. */
export function isHelpKey(event: KeyboardEvent): boolean {
  const [target] = event.composedPath();
  const isTyping = target instanceof Element && target.closest(TYPING) !== null;
  return event.key === "?" && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey;
}
