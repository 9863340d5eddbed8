/** The progress of an upload. */

import type { Progress } from "../api/upload";
import { size } from "./units";

/** What the server has written of an upload. */
export interface Written {
  readonly records: number;
  /** All of them, if the file says how many it has. */
  readonly total?: number;
}

interface UploadProgressProps {
  readonly progress: Progress;
  /** What the server does after the upload. */
  readonly rest: string;
  readonly written: Written | null;
}

export function UploadProgress({ progress, rest, written }: UploadProgressProps) {
  const { sent, total } = progress;
  const part = total === 0 ? 0 : sent / total;
  const value = written?.total === undefined ? part : written.records / written.total;
  return (
    <div>
      <progress className="progress" max={1} value={value} aria-label="Upload progress" />
      <p className="soft number">
        {part < 1
          ? `${Math.round(part * 100)} % of ${size(total)} uploaded`
          : `Uploaded. ${rest} ${written === null ? "" : countOf(written)}`}
      </p>
    </div>
  );
}

function countOf({ records, total }: Written): string {
  const done = records.toLocaleString("en");
  return total === undefined ? done : `${done} of ${total.toLocaleString("en")}`;
}
