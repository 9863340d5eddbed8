/** Light or dark: the system's choice until the user has chosen, which is stored here. */

import { useEffect, useState } from "react";
import type { IconName } from "../ui/Icon";

export type Theme = "system" | "light" | "dark";

export const THEMES: readonly (readonly [Theme, string, IconName])[] = [
  ["system", "System theme", "settings"],
  ["light", "Light theme", "sun"],
  ["dark", "Dark theme", "moon"],
];

const KEY = "rillbase:theme";

export function applyTheme(theme: Theme = stored()): void {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

export function useTheme(): [Theme, (theme: Theme) => void] {
  const [theme, setTheme] = useState<Theme>(stored);
  useEffect(() => applyTheme(theme), [theme]);
  return [
    theme,
    (chosen) => {
      chooseTheme(chosen);
      setTheme(chosen);
    },
  ];
}

/** Applies a theme, and stores it. */
export function chooseTheme(theme: Theme): void {
  localStorage.setItem(KEY, theme);
  applyTheme(theme);
}

function stored(): Theme {
  const stored = localStorage.getItem(KEY);
  return stored === "light" || stored === "dark" ? stored : "system";
}
