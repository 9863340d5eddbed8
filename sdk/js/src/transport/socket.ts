/** A connection that carries text messages both ways. */

export interface Socket {
  send(text: string): void;
  close(): void;
}

export interface SocketEvents {
  opened(): void;
  message(text: string): void;
  /** Told once. 1006: it broke without a word. */
  closed(code: number, reason: string): void;
}

/** Opens a connection to `/v1/realtime`. */
export type Dial = (url: string, events: SocketEvents) => Socket;

export const SUBPROTOCOL = "rillbase.v1";
export const BROKEN = 1006;
