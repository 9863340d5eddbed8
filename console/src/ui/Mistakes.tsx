/** The mistakes in a text, beside the editor that marks them. */

import { Icon } from "./Icon";
import type { Mistake } from "./JsonEditor";

export function Mistakes({ mistakes }: { readonly mistakes: readonly Mistake[] }) {
  if (mistakes.length === 0) return null;
  return (
    <div className="notice bad" role="alert">
      <Icon name="alert" />
      <ul className="grow">
        {mistakes.map(({ pointer, message }) => (
          <li key={pointer + message}>
            {pointer !== "" && <code>{pointer.slice(1)}</code>} {message}
          </li>
        ))}
      </ul>
    </div>
  );
}
