/** The file: picked or dropped, its format, and for CSV its delimiter and header. */

import { type DragEvent, useRef, useState } from "react";
import { Field, Select } from "../ui/Field";
import { Icon } from "../ui/Icon";
import { size } from "../ui/units";
import { DELIMITERS, type Dialect, type FileFormat, FORMAT_NAMES } from "./files";
import type { Wizard } from "./useWizard";

interface ChoiceProps {
  readonly wizard: Wizard;
  readonly formats: readonly FileFormat[];
}

export function FileChoice({ wizard, formats }: ChoiceProps) {
  const { file, dialect, isKnown, pick } = wizard;
  const input = useRef<HTMLInputElement>(null);
  const choose = () => input.current?.click();
  return (
    <>
      {file === null ? (
        <DropZone formats={formats} onChoose={choose} onPick={pick} />
      ) : (
        <ChosenFile file={file} onChoose={choose} />
      )}
      <input
        ref={input}
        type="file"
        hidden
        aria-label="File"
        onChange={({ target }) => {
          if (target.files?.[0] !== undefined) pick(target.files[0]);
          // Otherwise the same file, corrected, would be no change when it is chosen again.
          target.value = "";
        }}
      />
      {dialect !== null && <DialectFields wizard={wizard} dialect={dialect} formats={formats} />}
      {dialect !== null && !isKnown && (
        <p className="notice warn" role="alert">
          {shortName(dialect.format)} files cannot be imported here. Choose{" "}
          {formats.map(shortName).join(", ")}.
        </p>
      )}
    </>
  );
}

function shortName(format: FileFormat): string {
  return FORMAT_NAMES[format].split(",", 1)[0] ?? format;
}

interface ChosenProps {
  readonly file: File;
  readonly onChoose: () => void;
}

function ChosenFile({ file, onChoose }: ChosenProps) {
  return (
    <div className="import-file">
      <Icon name="log" />
      <strong className="cut">{file.name}</strong>
      <span className="soft number">{size(file.size)}</span>
      <button type="button" className="button small" onClick={onChoose}>
        Choose another file
      </button>
    </div>
  );
}

interface DropProps {
  readonly formats: readonly FileFormat[];
  readonly onChoose: () => void;
  readonly onPick: (file: File) => void;
}

function DropZone({ formats, onChoose, onPick }: DropProps) {
  const [isOver, setOver] = useState(false);
  function over(event: DragEvent) {
    event.preventDefault();
    setOver(true);
  }
  function drop(event: DragEvent) {
    event.preventDefault();
    setOver(false);
    const [dropped] = event.dataTransfer.files;
    if (dropped !== undefined) onPick(dropped);
  }
  return (
    <button
      type="button"
      className={isOver ? "drop-zone over" : "drop-zone"}
      onClick={onChoose}
      onDragOver={over}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
    >
      <Icon name="upload" size={22} />
      <strong>Drop a file here, or choose one</strong>
      <span className="soft">{formats.map(shortName).join(", ")}</span>
    </button>
  );
}

interface DialectProps extends ChoiceProps {
  readonly dialect: Dialect;
}

function DialectFields({ wizard, dialect, formats }: DialectProps) {
  const { delimiter, changeDialect } = wizard;
  const known = formats.includes(dialect.format) ? formats : [...formats, dialect.format];
  return (
    <div className="import-fields">
      <Field label="Format">
        <Select
          options={known.map((format) => [format, FORMAT_NAMES[format]] as const)}
          value={dialect.format}
          onChange={(format) => changeDialect({ format, delimiter: null })}
        />
      </Field>
      {dialect.format === "csv" && (
        <>
          <Field label="Delimiter">
            <Select
              options={DELIMITERS}
              value={delimiter}
              onChange={(chosen) => changeDialect({ delimiter: chosen })}
            />
          </Field>
          <label className="check">
            <input
              type="checkbox"
              checked={dialect.hasHeader}
              onChange={({ target }) => changeDialect({ hasHeader: target.checked })}
            />
            The first line has the names of the columns
          </label>
        </>
      )}
    </div>
  );
}
