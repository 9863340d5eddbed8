/** The platform's WebSocket: browsers, Deno, Bun, workers; and our own for Node.js. */

import { BROKEN, type Dial, type Socket, type SocketEvents, SUBPROTOCOL } from "./socket.js";

/** Returns the function that connects on this platform. */
export function platformDial(): Dial {
  return isNode() || !("WebSocket" in globalThis) ? dialNode : dialWebSocket;
}

function isNode(): boolean {
  const { process } = globalThis as { process?: { release?: { name?: string } } };
  return process?.release?.name === "node" && !("Bun" in globalThis) && !("Deno" in globalThis);
}

const dialWebSocket: Dial = (url, events) => {
  const socket = new WebSocket(url, SUBPROTOCOL);
  socket.onopen = () => events.opened();
  socket.onmessage = ({ data }: MessageEvent<unknown>) => events.message(String(data));
  socket.onclose = ({ code, reason }) => events.closed(code, reason);
  return {
    send: (text) => socket.send(text),
    close: () => socket.close(),
  };
};

/**
 * Node.js 20 has no WebSocket, and the one of Node.js 22 waits for the end of the close handshake
 * without a limit: a connection whose network is gone would keep the process running. Ours is
 * loaded only on Node.js.
 */
const dialNode: Dial = (url, events) => {
  let opened: Socket | undefined;
  let over = false;
  const fail = (error: unknown) => {
    if (!over) events.closed(BROKEN, String(error));
  };
  const begin = async (): Promise<void> => {
    const { dialNodeSocket } = await import("./node-socket.js");
    if (!over) opened = dialNodeSocket(url, relayed);
  };
  const relayed: SocketEvents = {
    opened: () => events.opened(),
    message: (text) => events.message(text),
    closed: (code, reason) => events.closed(code, reason),
  };
  begin().catch(fail);
  return {
    send: (text) => opened?.send(text),
    close: () => {
      over = true;
      opened?.close();
    },
  };
};
