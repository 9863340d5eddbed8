/** Light or dark: the system's choice until the user has chosen, which is stored here. */

import { useEffect, useState } from "react";

export type Theme = "system" | "light" | "dark";

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
      localStorage.setItem(KEY, chosen);
      setTheme(chosen);
    },
  ];
}

function stored(): Theme {
  const stored = localStorage.getItem(KEY);
  return stored === "light" || stored === "dark" ? stored : "system";
}
