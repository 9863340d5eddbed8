/** A value that follows another one once that has not changed for a moment. */

import { useEffect, useState } from "react";
import { isSame, type Json } from "./exactJson";

const PAUSE_MS = 400;

export function useSettled<T extends Json | undefined>(value: T): T {
  const [settled, setSettled] = useState(value);
  const isSettled = isSame(settled, value);
  useEffect(() => {
    if (isSettled) return;
    const timer = setTimeout(() => setSettled(value), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [value, isSettled]);
  return settled;
}
