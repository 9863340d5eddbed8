/**
 * Which way to dial. A WebSocket is the better way; where none has ever come about, every second
 * attempt goes another way, since some networks let only plain HTTP through.
 */

import type { Dial } from "./socket.js";

/** Returns a way to dial that tries the second one where the first never works. */
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
        // After the second way the first one gets its chance again.
        if (turnsAway || !isOpen) failures += 1;
        events.closed(code, reason);
      },
    });
  };
}
