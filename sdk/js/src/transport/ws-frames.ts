/**
 * Frames of RFC 6455, section 5.2: written masked, as clients must, and read in chunks of any size.
 */

export const CONTINUATION = 0;
export const TEXT = 1;
export const CLOSE = 8;
export const PING = 9;
export const PONG = 10;

const FIN = 0x80;
const MASKED = 0x80;
/** Results are split into parts of a few MiB; the server sends nothing larger. */
const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;

/** Returns a complete message as one masked frame. */
export function frame(kind: number, payload: Buffer): Buffer {
  const head = headOf(kind, payload.length);
  const mask = process.getBuiltinModule("node:crypto").randomBytes(4);
  const body = Buffer.from(payload);
  for (let place = 0; place < body.length; place += 1) {
    body[place] = (body[place] ?? 0) ^ (mask[place & 3] ?? 0);
  }
  return Buffer.concat([head, mask, body]);
}

function headOf(kind: number, length: number): Buffer {
  if (length < 126) return Buffer.from([FIN | kind, MASKED | length]);
  if (length < 65_536) return Buffer.from([FIN | kind, MASKED | 126, length >> 8, length & 0xff]);
  const head = Buffer.alloc(10);
  head[0] = FIN | kind;
  head[1] = MASKED | 127;
  head.writeBigUInt64BE(BigInt(length), 2);
  return head;
}

/** Assembles frames from bytes, and messages from frames. */
export class FrameReader {
  private waiting: Buffer[] = [];
  private waitingBytes = 0;
  private neededBytes = 2;
  private parts: Buffer[] = [];
  private partsBytes = 0;

  constructor(private readonly take: (kind: number, payload: Buffer) => void) {}

  /** Parses received bytes; throws if they are not a frame. */
  read(bytes: Buffer): void {
    this.waiting.push(bytes);
    this.waitingBytes += bytes.length;
    while (this.waitingBytes >= this.neededBytes) {
      const all = this.waiting.length === 1 ? this.waiting[0] : Buffer.concat(this.waiting);
      const rest = this.next(all ?? Buffer.alloc(0));
      if (rest === undefined) return;
      this.waiting = [rest];
      this.waitingBytes = rest.length;
      this.neededBytes = 2;
    }
  }

  /** Reads one frame and returns what follows it; undefined: more bytes are needed. */
  private next(all: Buffer): Buffer | undefined {
    const short = all.readUInt8(1) & 0x7f;
    const headBytes = short === 127 ? 10 : short === 126 ? 4 : 2;
    if (!this.has(all, headBytes)) return undefined;
    if ((all.readUInt8(1) & MASKED) !== 0) throw new Error("The server sent a masked frame.");
    const length = lengthOf(all, short);
    if (length > MAX_MESSAGE_BYTES) throw new Error("The message is too large.");
    if (!this.has(all, headBytes + length)) return undefined;
    const first = all.readUInt8(0);
    const payload = all.subarray(headBytes, headBytes + length);
    this.frame(first & 0x0f, (first & FIN) !== 0, payload);
    return all.subarray(headBytes + length);
  }

  private has(all: Buffer, bytes: number): boolean {
    if (all.length >= bytes) return true;
    this.waiting = [all];
    this.neededBytes = bytes;
    return false;
  }

  private frame(kind: number, isLast: boolean, payload: Buffer): void {
    if (kind >= CLOSE) {
      this.take(kind, payload);
      return;
    }
    this.parts.push(payload);
    this.partsBytes += payload.length;
    if (this.partsBytes > MAX_MESSAGE_BYTES) throw new Error("The message is too large.");
    if (!isLast) return;
    const whole = this.parts.length === 1 ? payload : Buffer.concat(this.parts);
    this.parts = [];
    this.partsBytes = 0;
    this.take(TEXT, whole);
  }
}

function lengthOf(all: Buffer, short: number): number {
  if (short === 126) return all.readUInt16BE(2);
  return short === 127 ? Number(all.readBigUInt64BE(2)) : short;
}
