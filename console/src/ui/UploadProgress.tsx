/** The progress of an upload. */

import type { Progress } from "../api/upload";
import { size } from "./units";

interface UploadProgressProps {
  readonly progress: Progress;
  /** What the server does after the upload. */
  readonly rest: string;
}

export function UploadProgress({ progress: { sent, total }, rest }: UploadProgressProps) {
  const part = total === 0 ? 0 : sent / total;
  return (
    <div>
      <progress className="progress" max={1} value={part} aria-label="Upload progress" />
      <p className="soft number">
        {part < 1 ? `${Math.round(part * 100)} % of ${size(total)} uploaded` : `Uploaded. ${rest}`}
      </p>
    </div>
  );
}
