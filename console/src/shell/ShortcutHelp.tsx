/** The list of keyboard shortcuts. */

import { Dialog } from "../ui/Dialog";
import { SHORTCUTS } from "./shortcuts";

export default function ShortcutHelp({ onClose }: { readonly onClose: () => void }) {
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose}>
      {SHORTCUTS.map(([area, shortcuts]) => (
        <section key={area} className="shortcuts">
          <h3>{area}</h3>
          <dl>
            {shortcuts.map(([keys, action]) => (
              <div key={keys}>
                <dt>
                  {keys.split(" ").map((key) => (
                    <kbd key={key}>{key}</kbd>
                  ))}
                </dt>
                <dd>{action}</dd>
              </div>
            ))}
          </dl>
        </section>
      ))}
      <footer>
        <button type="button" className="button" onClick={onClose}>
          Close
        </button>
      </footer>
    </Dialog>
  );
}
