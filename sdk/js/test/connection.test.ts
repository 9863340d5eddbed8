import assert from "node:assert/strict";
import { test } from "node:test";
import { type Client, type ClientOptions, createClient, type QuerySnapshot } from "../src/index.js";
import { FakeClock, FakeServer, row, settled } from "./fakes.js";

interface Stage {
  readonly clock: FakeClock;
  readonly server: FakeServer;
  readonly client: Client;
  readonly states: string[];
  readonly last: () => QuerySnapshot<Record<string, unknown>>;
  readonly stop: () => void;
}

/** A client that watches a collection. */
function watching(options: Partial<ClientOptions> = {}): Stage {
  const clock = new FakeClock();
  const server = new FakeServer();
  const client = createClient({
    url: "http://db",
    key: "rbk_x",
    clock,
    dial: server.dial,
    ...options,
  });
  const snapshots: QuerySnapshot<Record<string, unknown>>[] = [];
  const states: string[] = [];
  const stop = client.collection("todos").onSnapshot((snapshot) => {
    snapshots.push(snapshot);
    if (states.at(-1) !== snapshot.state) states.push(snapshot.state);
  });
  const last = () => {
    const found = snapshots.at(-1);
    if (found === undefined) throw new Error("Nothing was shown.");
    return found;
  };
  return { clock, server, client, states, last, stop };
}

function ids(snapshot: QuerySnapshot<Record<string, unknown>>): unknown[] {
  return snapshot.items.map(({ id }) => id);
}

test("a client greets, subscribes, and shows the answer", async () => {
  const { server, last } = watching();
  const socket = await server.answer([row("a", 1)]);
  assert.deepEqual(
    socket.said.map(({ type }) => type),
    ["hello", "subscribe"],
  );
  assert.equal(socket.said[0]?.token, "rbk_x");
  assert.deepEqual([ids(last()), last().state], [["a"], "live"]);
});

test("a broken connection is reopened and resumes from the resume token", async () => {
  const { clock, server, last, states } = watching();
  const first = await server.answer([row("a", 1)]);
  first.tell({
    type: "event",
    id: first.name,
    seq: 1,
    match: "add",
    key: "b",
    version: 1,
    document: { _id: "b" },
    resume: "r1",
  });
  first.break();
  await settled();
  assert.equal(last().state, "offline");
  await clock.pass(1_000);
  const second = server.last;
  second.open();
  assert.equal(second.all("subscribe")[0]?.resume, "r1");
  second.tell({ type: "welcome", connection: "c", heartbeat_ms: 10_000 });
  second.tell({
    type: "event",
    id: second.name,
    seq: 2,
    match: "remove",
    key: "a",
    version: 2,
    reason: "deleted",
    resume: "r2",
  });
  second.tell({ type: "ready", id: second.name, resume: "r2" });
  await settled();
  assert.deepEqual([ids(last()), last().state], [["b"], "live"]);
  assert.deepEqual(states, ["live", "offline", "connecting", "live"]);
});

test("an incomplete group is discarded", async () => {
  const { clock, server, last } = watching();
  const first = await server.answer([]);
  const txn = (index: number) => ({ id: "t", index, count: 2 });
  first.tell({
    type: "event",
    id: first.name,
    seq: 1,
    match: "add",
    key: "a",
    version: 1,
    document: { _id: "a" },
    txn: txn(0),
  });
  await settled();
  assert.deepEqual(ids(last()), []);
  first.break();
  await clock.pass(1_000);
  const second = server.last;
  second.open();
  assert.equal(second.all("subscribe")[0]?.resume, "r0");
  second.tell({
    type: "event",
    id: second.name,
    seq: 1,
    match: "add",
    key: "a",
    version: 1,
    document: { _id: "a" },
    txn: txn(0),
  });
  second.tell({
    type: "event",
    id: second.name,
    seq: 2,
    match: "add",
    key: "b",
    version: 1,
    document: { _id: "b" },
    txn: txn(1),
    resume: "r1",
  });
  await settled();
  assert.deepEqual(ids(last()), ["a", "b"]);
});

test("a gap in the numbering makes the client start over", async () => {
  const { server, last } = watching();
  const socket = await server.answer([row("a", 1)]);
  const before = socket.name;
  socket.tell({ type: "event", id: before, seq: 3, match: "remove", key: "a", version: 2 });
  assert.notEqual(socket.name, before);
  assert.equal(socket.all("subscribe").at(-1)?.resume, undefined);
  socket.tell({ type: "result", id: socket.name, items: [row("c", 1)], part: 0, last: true });
  socket.tell({ type: "ready", id: socket.name });
  await settled();
  assert.deepEqual([ids(last()), last().state], [["c"], "live"]);
});

test("frames of an earlier subscription have no effect", async () => {
  const { clock, server, last } = watching();
  const first = await server.answer([row("a", 1)]);
  first.break();
  await clock.pass(1_000);
  await server.answer([row("b", 1)]);
  first.tell({ type: "result", id: first.name, items: [], part: 0, last: true });
  await settled();
  assert.deepEqual(ids(last()), ["b"]);
});

test("a silent connection is probed, then closed", async () => {
  const { clock, server, last } = watching();
  const socket = await server.answer([]);
  await clock.pass(11_000);
  assert.equal(socket.all("ping").length, 1);
  assert.equal(last().state, "live");
  await clock.pass(9_000);
  assert.equal(socket.isClosed, true);
  assert.notEqual(last().state, "live");
});

test("waits grow while a server is unavailable, and are reset by the first welcome", async () => {
  const { clock, server } = watching();
  const begun: number[] = [];
  for (let attempt = 0; attempt < 5; attempt += 1) {
    await settled();
    begun.push(clock.now());
    server.last.break();
    const dialled = server.sockets.length;
    while (server.sockets.length === dialled) await clock.pass(50);
  }
  const waits = begun.slice(1).map((at, place) => at - (begun[place] ?? 0));
  assert.deepEqual(
    waits,
    [...waits].sort((a, b) => a - b),
  );
  assert.ok((waits.at(-1) ?? 0) >= 4 * (waits[0] ?? 0));
});

test("after goodbye, the client reconnects after the given time", async () => {
  const { clock, server } = watching();
  const socket = await server.answer([]);
  socket.tell({ type: "goodbye", reconnect_in_ms: 700 });
  await clock.pass(600);
  assert.equal(server.sockets.length, 1);
  await clock.pass(200);
  assert.equal(server.sockets.length, 2);
});

test("a stale answer stays visible and says so", async () => {
  const { server, last } = watching();
  const socket = await server.answer([row("a", 1)]);
  socket.tell({ type: "status", id: socket.name, state: "stale", reason: "node" });
  await settled();
  assert.deepEqual([ids(last()), last().state], [["a"], "stale"]);
  socket.tell({ type: "status", id: socket.name, state: "live" });
  await settled();
  assert.equal(last().state, "live");
});

test("a reset is shown as the difference from the previous answer", async () => {
  const { server, last } = watching();
  const socket = await server.answer([row("a", 1), row("b", 1)]);
  socket.tell({ type: "reset", id: socket.name, reason: "resume" });
  socket.tell({
    type: "result",
    id: socket.name,
    items: [row("b", 1), row("c", 1)],
    part: 0,
    last: true,
  });
  socket.tell({ type: "ready", id: socket.name });
  await settled();
  assert.deepEqual(ids(last()), ["b", "c"]);
  assert.deepEqual(
    last().changes.map(({ type, item }) => [type, item.id]),
    [
      ["remove", "a"],
      ["add", "c"],
    ],
  );
});

test("a refused subscription fails with the server's code and keeps the connection", async () => {
  const { server, last } = watching();
  await settled();
  server.last.open();
  server.last.tell({ type: "welcome", connection: "c", heartbeat_ms: 10_000 });
  server.last.tell({
    type: "error",
    id: server.last.name,
    error: {
      code: "invalid_filter",
      status: 400,
      errors: [{ pointer: "/filter/$x", code: "x", detail: "" }],
    },
  });
  await settled();
  assert.equal(last().state, "failed");
  assert.equal(last().error?.code, "invalid_filter");
});

test("a token that ends is replaced, and subscriptions go on", async () => {
  let made = 0;
  const getToken = () => {
    made += 1;
    return `token-${made}`;
  };
  const { server, last } = watching({ key: "rbp_k", getToken });
  const socket = await server.answer([row("a", 1)]);
  assert.deepEqual(socket.said[0], { type: "hello", key: "rbp_k", token: "token-1" });
  socket.tell({ type: "end", id: socket.name, error: { code: "token_expired", status: 401 } });
  await settled();
  assert.deepEqual(socket.all("auth"), [
    { type: "auth", id: "auth", key: "rbp_k", token: "token-2" },
  ]);
  socket.tell({ type: "ack", id: "auth" });
  assert.equal(socket.all("subscribe").at(-1)?.resume, "r0");
  socket.tell({ type: "ready", id: socket.name });
  await settled();
  assert.deepEqual([ids(last()), last().state], [["a"], "live"]);
});

test("a token is renewed before it ends", async () => {
  const clock = new FakeClock();
  let made = 0;
  const getToken = () => {
    made += 1;
    return { token: `token-${made}`, expiresAt: new Date(clock.now() + 60_000) };
  };
  const { server } = watching({ key: "rbp_k", getToken, clock });
  const socket = await server.answer([]);
  await clock.pass(9_000);
  socket.tell({ type: "heartbeat" });
  await clock.pass(9_000);
  socket.tell({ type: "heartbeat" });
  await clock.pass(9_000);
  socket.tell({ type: "heartbeat" });
  await clock.pass(4_000);
  assert.equal(socket.all("auth")[0]?.token, "token-2");
});

test("credentials that are refused twice end the subscription", async () => {
  const { clock, server, last } = watching({ key: "rbp_k", getToken: () => "bad" });
  for (let attempt = 0; attempt < 2; attempt += 1) {
    await clock.pass(1);
    server.last.open();
    server.last.tell({
      type: "error",
      id: null,
      error: { code: "invalid_credentials", status: 401 },
    });
    server.last.break(4401);
  }
  await settled();
  assert.equal(last().error?.code, "invalid_credentials");
  assert.equal(server.sockets.length, 2);
});

test("equal queries share one subscription, which ends with the last listener", async () => {
  const { clock, server, client, stop } = watching();
  const socket = await server.answer([row("a", 1)]);
  const seen: unknown[] = [];
  const stopOther = client.collection("todos").onSnapshot(({ documents }) => seen.push(documents));
  await settled();
  assert.equal(socket.all("subscribe").length, 1);
  assert.equal(seen.length, 1);
  stop();
  stopOther();
  await clock.pass(1_500);
  assert.equal(socket.all("unsubscribe").length, 1);
  await clock.pass(5_000);
  assert.equal(socket.isClosed, true);
  assert.equal(client.state, "idle");
});

test("changes are iterated across interruptions without a loss or a repetition", async () => {
  const { clock, server, client } = watching();
  const events: string[] = [];
  const end = new AbortController();
  const reading = (async () => {
    for await (const event of client.collection("todos").changes({ signal: end.signal })) {
      events.push(
        event.type === "result" ? `=${event.documents.length}` : `${event.type} ${event.id}`,
      );
    }
  })();
  const first = await server.answer([row("a", 1)]);
  first.tell({
    type: "event",
    id: first.name,
    seq: 1,
    match: "add",
    key: "b",
    version: 1,
    document: { _id: "b" },
    resume: "r1",
  });
  first.break();
  await clock.pass(1_000);
  const second = server.last;
  second.open();
  second.tell({ type: "welcome", connection: "c", heartbeat_ms: 10_000 });
  second.tell({ type: "reset", id: second.name, reason: "gone" });
  second.tell({
    type: "result",
    id: second.name,
    items: [row("b", 1), row("c", 1)],
    part: 0,
    last: true,
  });
  await settled();
  end.abort();
  await reading;
  assert.deepEqual(events, ["=1", "add b", "remove a", "add c"]);
});

const NOT_ALLOWED = {
  type: "error",
  id: null,
  error: { code: "forbidden", status: 403, detail: "The origin is not allowed." },
};

/** Rejects the client's page as the server does, and returns what was written to console.error. */
async function rejected({ server }: Stage): Promise<string[]> {
  const written: string[] = [];
  const original = console.error;
  console.error = (text: string) => written.push(text);
  try {
    await settled();
    server.last.open();
    await settled();
    server.last.tell(NOT_ALLOWED);
    server.last.break(4403);
    await settled();
  } finally {
    console.error = original;
  }
  return written;
}

test("a rejected origin is written to console.error when nothing else handles it", async () => {
  const stage = watching();
  assert.deepEqual(await rejected(stage), [
    'Rillbase: the query on "todos" failed (forbidden): The origin is not allowed.',
  ]);
  assert.equal(stage.last().state, "failed");
});

test("an error handler receives failures instead of console.error", async () => {
  const errors: string[] = [];
  const stage = watching({ onError: (error) => errors.push(error.code) });
  assert.deepEqual(await rejected(stage), []);
  assert.deepEqual(errors, ["forbidden"]);
});

test("closing the client is not a failure", async () => {
  const errors: string[] = [];
  const { client, server } = watching({ onError: (error) => errors.push(error.code) });
  client.aggregate("sales").on({}, () => {});
  await server.answer([]);
  client.close();
  await settled();
  assert.deepEqual(errors, []);
});
