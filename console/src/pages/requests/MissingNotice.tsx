/** Says what is missing from the request log. */

import type { MissingRequests } from "../../api/types";
import { Icon } from "../../ui/Icon";
import { momentText } from "../../ui/Time";
import { numberText } from "../../ui/units";

export function MissingNotice({ missing }: { readonly missing: MissingRequests }) {
  const { dropped, removed, removed_until: until } = missing;
  if (dropped === 0 && removed === 0) return null;
  return (
    <div className="notice" role="note">
      <Icon name="alert" size={15} />
      <div className="grow">
        {removed > 0 && until !== null && (
          <p>
            The log is full: {requests(removed)} from before {momentText(until)}{" "}
            {removed === 1 ? "was" : "were"} removed.
          </p>
        )}
        {dropped > 0 && (
          <p>
            {requests(dropped)} arrived faster than the log records and{" "}
            {dropped === 1 ? "is" : "are"} missing.
          </p>
        )}
      </div>
    </div>
  );
}

function requests(count: number): string {
  return `${numberText(count)} ${count === 1 ? "request" : "requests"}`;
}
