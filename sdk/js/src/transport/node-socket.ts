/**
 * A WebSocket client for Node.js 20 (RFC 6455), with the features that the protocol needs: text
 * messages, whole or fragmented, ping and pong, closing. It loads the modules of Node.js when it is
 * used, so bundlers for browsers need not know them.
 */

import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { BROKEN, type Socket, type SocketEvents, SUBPROTOCOL } from "./socket.js";
import { CLOSE, FrameReader, frame, PING, PONG, TEXT } from "./ws-frames.js";

/** The timeout of the close handshake. */
const CLOSE_TIMEOUT_MS = 2_000;

/** Connects; every failure is reported to `events.closed`. */
export function dialNodeSocket(url: string, events: SocketEvents): Socket {
  const address = new URL(url.replace(/^ws/, "http"));
  const secure = address.protocol === "https:";
  const http = process.getBuiltinModule(secure ? "node:https" : "node:http");
  const connection = new Connection(events);
  const request = http.request(address, {
    headers: {
      Connection: "Upgrade",
      Upgrade: "websocket",
      "Sec-WebSocket-Version": "13",
      "Sec-WebSocket-Key": process
        .getBuiltinModule("node:crypto")
        .randomBytes(16)
        .toString("base64"),
      "Sec-WebSocket-Protocol": SUBPROTOCOL,
    },
  });
  request.on("upgrade", (_answer: IncomingMessage, stream: Duplex, head: Buffer) => {
    connection.open(stream, head);
  });
  request.on("response", (answer: IncomingMessage) => {
    answer.resume();
    connection.end(BROKEN, `The server responded with status ${answer.statusCode}.`);
  });
  request.on("error", (error: Error) => connection.end(BROKEN, error.message));
  request.end();
  return {
    send: (text) => connection.send(TEXT, Buffer.from(text)),
    close: () => {
      if (!connection.close()) request.destroy();
    },
  };
}

class Connection {
  private stream: Duplex | undefined;
  private over = false;
  private readonly reader: FrameReader;

  constructor(private readonly events: SocketEvents) {
    this.reader = new FrameReader((kind, payload) => this.receive(kind, payload));
  }

  open(stream: Duplex, head: Buffer): void {
    this.stream = stream;
    stream.on("data", (bytes: Buffer) => this.read(bytes));
    stream.on("error", (error: Error) => this.end(BROKEN, error.message));
    stream.on("close", () => this.end(BROKEN, "The connection broke."));
    stream.on("end", () => this.end(BROKEN, "The connection broke."));
    this.events.opened();
    if (head.length > 0) this.read(head);
  }

  send(kind: number, payload: Buffer): void {
    if (this.stream?.writable) this.stream.write(frame(kind, payload));
  }

  /** Sends a close frame; false: the connection was not open. */
  close(): boolean {
    if (this.stream === undefined) return false;
    this.send(CLOSE, Buffer.from([0x03, 0xe8]));
    const { stream } = this;
    setTimeout(() => stream.destroy(), CLOSE_TIMEOUT_MS).unref();
    return true;
  }

  /** Reports the end of the connection, once. */
  end(code: number, reason: string): void {
    if (this.over) return;
    this.over = true;
    this.stream?.destroy();
    this.events.closed(code, reason);
  }

  private read(bytes: Buffer): void {
    try {
      this.reader.read(bytes);
    } catch (error) {
      this.end(BROKEN, String(error));
    }
  }

  private receive(kind: number, payload: Buffer): void {
    if (this.over) return;
    if (kind === TEXT) this.events.message(payload.toString("utf8"));
    else if (kind === PING) this.send(PONG, payload);
    else if (kind === CLOSE) {
      this.send(CLOSE, payload.subarray(0, 2));
      const code = payload.length >= 2 ? payload.readUInt16BE(0) : 1005;
      this.end(code, payload.subarray(2).toString("utf8"));
    }
  }
}
