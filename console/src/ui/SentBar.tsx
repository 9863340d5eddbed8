/** How much of a file has been sent. */

import type { Progress } from "../api/upload";
import { size } from "./units";

interface SentBarProps {
  readonly progress: Progress;
  /** What is done once all of it has been sent. */
  readonly rest: string;
}

export function SentBar({ progress: { sent, total }, rest }: SentBarProps) {
  const part = total === 0 ? 0 : sent / total;
  return (
    <div>
      <progress className="progress" max={1} value={part} aria-label="Sent" />
      <p className="soft number">
        {part < 1 ? `${Math.round(part * 100)} % of ${size(total)} sent` : `Sent. ${rest}`}
      </p>
    </div>
  );
}
