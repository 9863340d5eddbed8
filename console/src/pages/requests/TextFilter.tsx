/** An input that filters once typing pauses, and only by what the API accepts. */

import { useEffect, useState } from "react";

const PAUSE_MS = 250;
const ANYTHING = /^/;

interface TextFilterProps {
  readonly label: string;
  readonly placeholder: string;
  readonly value: string;
  readonly pattern?: RegExp;
  readonly list?: string;
  readonly className?: string;
  readonly onChange: (value: string) => void;
}

export function TextFilter(props: TextFilterProps) {
  const { label, placeholder, value, pattern = ANYTHING, list, className = "", onChange } = props;
  const [text, setText] = useTyped(value, pattern, onChange);
  return (
    <input
      className={`input small mono ${className}`}
      type="search"
      aria-label={label}
      aria-invalid={pattern.test(text.trim()) ? undefined : true}
      placeholder={placeholder}
      list={list}
      maxLength={200}
      spellCheck={false}
      autoComplete="off"
      value={text}
      onChange={({ target }) => setText(target.value)}
    />
  );
}

/** Returns the text that is being typed, which follows the filter when that changes elsewhere. */
function useTyped(value: string, pattern: RegExp, onChange: (value: string) => void) {
  const [text, setText] = useState(value);
  const [sent, setSent] = useState(value);
  if (sent !== value) {
    setSent(value);
    setText(value);
  }
  useEffect(() => {
    const typed = text.trim();
    if (typed === value || !pattern.test(typed)) return;
    const timer = setTimeout(() => {
      setSent(typed);
      onChange(typed);
    }, PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text, value, pattern, onChange]);
  return [text, setText] as const;
}
