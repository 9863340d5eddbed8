import assert from "node:assert/strict";
import { test } from "node:test";
import { eventStreamDial, Lines } from "../src/transport/event-stream.js";
import { withFallback } from "../src/transport/fallback.js";
import type { Dial, SocketEvents } from "../src/transport/socket.js";
import { FrameReader, frame, PING, TEXT } from "../src/transport/ws-frames.js";

const silent: SocketEvents = { opened() {}, message() {}, closed() {} };

/** Dials that are noted and left to the test. */
function noted(name: string, log: string[], all: SocketEvents[]): Dial {
  return (_url, events) => {
    log.push(name);
    all.push(events);
    return { send() {}, close() {} };
  };
}

test("where no WebSocket comes about, every second attempt goes another way", () => {
  const log: string[] = [];
  const all: SocketEvents[] = [];
  const dial = withFallback(noted("socket", log, all), noted("stream", log, all));
  for (let attempt = 0; attempt < 4; attempt += 1) {
    dial("", silent);
    all.at(-1)?.closed(1006, "");
  }
  assert.deepEqual(log, ["socket", "stream", "socket", "stream"]);
});

test("once a WebSocket has worked, no other transport is used", () => {
  const log: string[] = [];
  const all: SocketEvents[] = [];
  const dial = withFallback(noted("socket", log, all), noted("stream", log, all));
  dial("", silent);
  all.at(-1)?.opened();
  for (let attempt = 0; attempt < 3; attempt += 1) {
    all.at(-1)?.closed(1006, "");
    dial("", silent);
  }
  assert.deepEqual(log, ["socket", "socket", "socket", "socket"]);
});

test("events are assembled from chunks of any size", () => {
  const text =
    'retry: 1000\r\n\r\nevent: result\r\nid: t\r\ndata: {"a":\r\ndata: 1}\r\n\r\n: c\n\ndata: 2\n\n';
  for (let size = 1; size < text.length; size += 1) {
    const events: string[] = [];
    const lines = new Lines((data) => events.push(data));
    for (let at = 0; at < text.length; at += size) lines.take(text.slice(at, at + size));
    assert.deepEqual(events, ['{"a":\n1}', "2"]);
  }
});

test("streams resume by their token and carry the subscription's name", async () => {
  const asked: [string, RequestInit][] = [];
  const fetching = (async (url: string, init: RequestInit) => {
    asked.push([url, init]);
    return new Response('data: {"type":"ready","id":"live","resume":"r2"}\n\n');
  }) as unknown as typeof fetch;
  const told: string[] = [];
  const closed = new Promise<number>((resolve) => {
    const events: SocketEvents = {
      opened: () => {
        socket.send(JSON.stringify({ type: "hello", token: "k" }));
        socket.send(
          JSON.stringify({
            type: "subscribe",
            id: "s1",
            collection: "a b",
            filter: { n: 1 },
            resume: "r1",
          }),
        );
      },
      message: (text) => told.push(text),
      closed: resolve,
    };
    const socket = eventStreamDial(fetching)("ws://db/v1/realtime", events);
  });
  assert.equal(await closed, 1006);
  assert.equal(asked[0]?.[0], "http://db/v1/collections/a%20b/live?filter=%7B%22n%22%3A1%7D");
  assert.deepEqual(asked[0]?.[1].headers, { Authorization: "Bearer k", "Last-Event-ID": "r1" });
  assert.deepEqual(
    told.map((text) => JSON.parse(text)).map(({ type, id }) => [type, id]),
    [
      ["welcome", undefined],
      ["ready", "s1"],
    ],
  );
});

test("a subscription to a topic waits for a WebSocket instead of failing", async () => {
  const messages: string[] = [];
  const code = await new Promise<number>((closed) => {
    const fetching = () => Promise.reject(new Error("A topic has no stream."));
    const socket = eventStreamDial(fetching)("ws://db/v1/realtime", {
      opened: () => socket.send(JSON.stringify({ type: "subscribe", id: "s1", topic: "traffic" })),
      message: (text) => messages.push(text),
      closed,
    });
  });
  assert.equal(code, 1006);
  assert.deepEqual(messages, []);
});

test("frames of a WebSocket are read in any pieces, and masked when written", () => {
  const unmasked = (kind: number, last: boolean, text: string) => {
    const payload = Buffer.from(text);
    const head =
      payload.length < 126 ? [payload.length] : [126, payload.length >> 8, payload.length & 255];
    return Buffer.concat([Buffer.from([(last ? 0x80 : 0) | kind, ...head]), payload]);
  };
  const long = "x".repeat(300);
  const bytes = Buffer.concat([
    unmasked(TEXT, true, "a"),
    unmasked(TEXT, false, "b"),
    unmasked(PING, true, "p"),
    unmasked(0, true, long),
  ]);
  for (let size = 1; size < bytes.length; size += 7) {
    const seen: [number, string][] = [];
    const reader = new FrameReader((kind, payload) => seen.push([kind, payload.toString()]));
    for (let at = 0; at < bytes.length; at += size) reader.read(bytes.subarray(at, at + size));
    assert.deepEqual(seen, [
      [TEXT, "a"],
      [PING, "p"],
      [TEXT, `b${long}`],
    ]);
  }
  const written = frame(TEXT, Buffer.from("hello"));
  assert.equal((written[1] ?? 0) & 0x80, 0x80);
  assert.throws(() => new FrameReader(() => {}).read(written), /sent a masked frame/);
});
