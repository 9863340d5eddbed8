/** A button that opens a file dialog, and shows the name of the chosen file. */

import { useRef } from "react";
import { Icon } from "./Icon";

interface FilePickProps {
  readonly file: File | null;
  /** The endings of files that fit. */
  readonly accept: string;
  readonly onPick: (file: File | null) => void;
}

export function FilePick({ file, accept, onPick }: FilePickProps) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <button type="button" className="button" onClick={() => input.current?.click()}>
        <Icon name="upload" size={14} /> {file === null ? "Choose a file" : file.name}
      </button>
      <input
        ref={input}
        type="file"
        hidden
        aria-label="File"
        accept={accept}
        onChange={({ target }) => {
          onPick(target.files?.[0] ?? null);
          // Otherwise the same file, mended, would be no change when it is chosen again.
          target.value = "";
        }}
      />
    </>
  );
}
