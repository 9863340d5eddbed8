/** The WebSocket that the platform brings: browsers, Node.js 22, Deno, Bun, workers. */

import { BROKEN, type Dial, type Socket, type SocketEvents, SUBPROTOCOL } from "./socket.js";

/** Returns how to dial on this platform. */
export function platformDial(): Dial {
  return "WebSocket" in globalThis ? dialWebSocket : dialNode;
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

/** Node.js 20 has no WebSocket; ours for it is only loaded there. */
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
