/** A code block with a button that copies it. */

import { useState } from "react";
import { Icon } from "./Icon";

interface CodeProps {
  readonly text: string;
  readonly label: string;
  readonly onCopied?: () => void;
}

export function Code({ text, label, onCopied }: CodeProps) {
  return (
    <div className="code">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrolling elements need the keyboard. */}
      <pre tabIndex={0}>
        <code>{text}</code>
      </pre>
      <span className="copy">
        <CopyButton
          text={text}
          label={`Copy ${label}`}
          {...(onCopied === undefined ? {} : { onCopied })}
        />
      </span>
    </div>
  );
}

const SHOWN_MS = 1_500;

export function CopyButton({ text, label, onCopied }: CodeProps) {
  const [isCopied, setCopied] = useState(false);
  async function copy() {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    onCopied?.();
    setTimeout(() => setCopied(false), SHOWN_MS);
  }
  return (
    <button
      type="button"
      className="button small icon"
      aria-label={label}
      title={label}
      onClick={copy}
    >
      <Icon name={isCopied ? "check" : "copy"} size={13} />
    </button>
  );
}
