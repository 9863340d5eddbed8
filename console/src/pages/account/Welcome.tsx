/** For users who are not a member of any tenant yet. */

import { useState } from "react";
import { useSigning } from "../../api/session";
import { NewTenant } from "../../shell/NewTenant";
import { Door } from "./Door";

export default function Welcome() {
  const { signOut } = useSigning();
  const [isAdding, setAdding] = useState(false);
  return (
    <Door
      title="Create your first tenant"
      lead="A tenant contains your collections, keys and members. You can have several, for example for staging and production."
    >
      <button type="button" className="button main" onClick={() => setAdding(true)}>
        New tenant
      </button>
      <div className="more">
        <button type="button" className="button plain small" onClick={signOut}>
          Sign out
        </button>
      </div>
      {isAdding && <NewTenant onClose={() => setAdding(false)} />}
    </Door>
  );
}
