/** When an error happens and what to do about it, as the documentation says. */

import { remedyOf } from "./remedies";
import "./remedy.css";

export function Remedy({ code }: { readonly code: string }) {
  const remedy = remedyOf(code);
  if (remedy === undefined) return null;
  return (
    <div className="remedy">
      <div>
        <h3>When it happens</h3>
        <p>
          <Words text={remedy.when} />
        </p>
      </div>
      <div>
        <h3>What to do</h3>
        <p>
          <Words text={remedy.what} />
        </p>
      </div>
    </div>
  );
}

/** Text in which backquotes mark code. */
function Words({ text }: { readonly text: string }) {
  return text.split("`").map((part, place) =>
    place % 2 === 1 ? (
      // biome-ignore lint/suspicious/noArrayIndexKey: the parts never move.
      <code key={place}>{part}</code>
    ) : (
      part
    ),
  );
}
