/** How much of a limit is used, as numbers and as a bar. */

import { amountOf, isUnlimited, titleOf } from "./quotaNames";
import "./usage.css";

export interface QuotaAmountProps {
  readonly name: string;
  readonly limit: number;
  readonly used?: number | undefined;
}

const NEARLY_FULL = 0.8;

export function QuotaAmount({ name, limit, used }: QuotaAmountProps) {
  if (isUnlimited(name, limit)) {
    return (
      <>
        {used !== undefined && <strong className="number">{amountOf(name, used)} </strong>}
        <span className="soft">unlimited</span>
      </>
    );
  }
  if (used === undefined) return <strong className="number">{amountOf(name, limit)}</strong>;
  const part = limit === 0 ? 1 : used / limit;
  return (
    <>
      <strong className="number">{amountOf(name, used)}</strong>
      <span className="soft number"> of {amountOf(name, limit)}</span>
      <progress
        className={part >= NEARLY_FULL ? "progress full" : "progress"}
        max={1}
        value={Math.min(1, part)}
        aria-label={`Share of ${titleOf(name)} used`}
      />
    </>
  );
}
