/** Lists the validation errors that the editor marks. */

import { Icon } from "./Icon";
import type { ValidationError } from "./JsonEditor";

export function ValidationErrors({
  validationErrors,
}: {
  readonly validationErrors: readonly ValidationError[];
}) {
  if (validationErrors.length === 0) return null;
  return (
    <div className="notice bad" role="alert">
      <Icon name="alert" />
      <ul className="grow">
        {validationErrors.map(({ pointer, message }) => (
          <li key={pointer + message}>
            {pointer !== "" && <code>{pointer.slice(1)}</code>} {message}
          </li>
        ))}
      </ul>
    </div>
  );
}
