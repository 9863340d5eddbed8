/**
 * Chooses the transport. A WebSocket is preferred; as long as none has ever succeeded, every second
 * attempt uses the alternative, because some networks allow only plain HTTP.
 */

import type { Dial } from "./socket.js";

/**
 * Returns a function that connects, and tries the second transport while the first never succeeds.
 */
export function withFallback(first: Dial, second: Dial): Dial {
  let hasWorked = false;
  let failures = 0;
  return (url, events) => {
    const turnsAway = !hasWorked && failures % 2 === 1;
    let isOpen = false;
    const dial = turnsAway ? second : first;
    return dial(url, {
      opened: () => {
        isOpen = true;
        if (!turnsAway) hasWorked = true;
        events.opened();
      },
      message: (text) => events.message(text),
      closed: (code, reason) => {
        // After the second transport, the first one is tried again.
        if (turnsAway || !isOpen) failures += 1;
        events.closed(code, reason);
      },
    });
  };
}
