/** The outcome of an import, and the records that were refused. */

import { Icon } from "../ui/Icon";
import type { ImportOutcome, LineError } from "./target";

const MAX_SHOWN = 100;

interface ResultProps {
  readonly outcome: ImportOutcome;
  readonly noun: "Line" | "Row";
}

export function ImportResult({ outcome, noun }: ResultProps) {
  const { summary, failed, errors } = outcome;
  return (
    <div className={failed > 0 ? "notice warn" : "notice"} role="status">
      <Icon name={failed > 0 ? "alert" : "check"} />
      <div className="grow">
        {summary}
        {errors.length > 0 && <LineErrors errors={errors} noun={noun} />}
      </div>
    </div>
  );
}

interface ErrorsProps {
  readonly errors: readonly LineError[];
  /** What their numbers count. */
  readonly noun: "Line" | "Row";
}

export function LineErrors({ errors, noun }: ErrorsProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: scrolling elements need the keyboard.
    <ul className="line-errors" aria-label="Errors" tabIndex={0}>
      {errors.slice(0, MAX_SHOWN).map(({ line, column, detail }) => (
        <li key={`${line} ${column} ${detail}`}>
          {line !== undefined && (
            <strong className="number">{`${noun} ${placeOf(line, column)}:`}</strong>
          )}{" "}
          {detail}
        </li>
      ))}
      {errors.length > MAX_SHOWN && <li>and {errors.length - MAX_SHOWN} more</li>}
    </ul>
  );
}

function placeOf(line: number, column: number | undefined): string {
  return column === undefined ? `${line}` : `${line}, column ${column}`;
}
