/** An error for people: what is wrong, where, and what to quote when asking for help. */

import { type Failure, failureOf } from "../api/failure";
import { Icon } from "./Icon";

export function ErrorNotice({
  error,
  onRetry,
}: {
  readonly error: unknown;
  readonly onRetry?: () => void;
}) {
  const failure = failureOf(error);
  return (
    <div className="notice bad" role="alert">
      <Icon name="alert" />
      <div className="grow">
        <strong>{failure.title}</strong>
        <Places failure={failure} />
        {failure.requestId !== undefined && (
          <div>
            <small>
              <code>{failure.code}</code> · request <code>{failure.requestId.slice(0, 12)}</code>
            </small>
          </div>
        )}
      </div>
      {onRetry !== undefined && (
        <button type="button" className="button small" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}

function Places({ failure }: { readonly failure: Failure }) {
  const places = failure.places.filter(
    ({ pointer, detail }) => pointer !== "" || detail !== failure.title,
  );
  if (places.length === 0) return null;
  return (
    <ul>
      {places.map(({ pointer, detail }) => (
        <li key={pointer + detail}>
          {pointer !== "" && <code>{pointer.replace(/^\//, "")}</code>}{" "}
          {detail !== failure.title && detail}
        </li>
      ))}
    </ul>
  );
}
