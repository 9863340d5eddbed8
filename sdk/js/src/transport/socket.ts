/** A connection that carries text messages in both directions. */

export interface Socket {
  send(text: string): void;
  close(): void;
}

/** What a connection reports. */
export interface SocketEvents {
  opened(): void;
  message(text: string): void;
  /** Called once. 1006: the connection broke without a close frame. */
  closed(code: number, reason: string): void;
}

/** Opens a connection to `/v1/realtime`. */
export type Dial = (url: string, events: SocketEvents) => Socket;

export const SUBPROTOCOL = "rillbase.v1";
export const BROKEN = 1006;
