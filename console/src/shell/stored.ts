/** A choice of the user that the browser stores. */

import { useState } from "react";

export function useStored(key: string, initial: boolean): [boolean, (value: boolean) => void] {
  const [value, setValue] = useState(() => read(key) ?? initial);
  function store(next: boolean) {
    setValue(next);
    try {
      localStorage.setItem(key, String(next));
    } catch {
      // Without storage the choice lasts as long as the page.
    }
  }
  return [value, store];
}

function read(key: string): boolean | null {
  try {
    const text = localStorage.getItem(key);
    return text === null ? null : text === "true";
  } catch {
    return null;
  }
}
