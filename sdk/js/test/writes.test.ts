import assert from "node:assert/strict";
import { test } from "node:test";
import { type ClientOptions, createClient, memoryQueue, type QuerySnapshot } from "../src/index.js";
import { FakeClock, FakeServer, row, settled } from "./fakes.js";

type Doc = Record<string, unknown>;

interface Call {
  readonly method: string;
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body: unknown;
  readonly answer: (status: number, body?: unknown, headers?: Record<string, string>) => void;
  readonly breakOff: () => void;
}

/** An HTTP server that the test plays. */
function fakeFetch(): { readonly calls: Call[]; readonly fetch: typeof fetch } {
  const calls: Call[] = [];
  const answered = (input: unknown, init: RequestInit = {}): Promise<Response> => {
    return new Promise((resolve, reject) => {
      init.signal?.addEventListener("abort", () => reject(init.signal?.reason));
      calls.push({
        method: init.method ?? "GET",
        path: String(input).replace("http://db", ""),
        headers: init.headers as Record<string, string>,
        body: init.body ? JSON.parse(String(init.body)) : undefined,
        answer: (status, body, headers = {}) => {
          const text = body === undefined ? null : JSON.stringify(body);
          resolve(new Response(text, { status, headers }));
        },
        breakOff: () => reject(new TypeError("fetch failed")),
      });
    });
  };
  return { calls, fetch: answered as typeof fetch };
}

async function stage(options: Partial<ClientOptions> = {}, limit?: number) {
  const clock = new FakeClock();
  const server = new FakeServer();
  const http = fakeFetch();
  const client = createClient({
    url: "http://db",
    key: "rbk_x",
    clock,
    dial: server.dial,
    fetch: http.fetch,
    ...options,
  });
  const todos = client.collection<Doc>("todos");
  let last: QuerySnapshot<Doc> | undefined;
  let query = todos.where("done", "==", false).sort("rank");
  if (limit !== undefined) query = query.limit(limit);
  query.onSnapshot((snapshot) => {
    last = snapshot;
  });
  const socket = await server.answer([
    row("a", 1, { done: false, rank: 1 }),
    row("b", 1, { done: false, rank: 3 }),
  ]);
  const shown = () =>
    (last?.items ?? []).map(({ id, isPending }) => `${id}${isPending ? "?" : ""}`);
  return {
    clock,
    server,
    socket,
    client,
    todos,
    calls: http.calls,
    shown,
    documents: () => last?.documents,
  };
}

test("a write is shown at once, then as the server has it", async () => {
  const { todos, calls, shown, socket } = await stage();
  const writing = todos.insert({ _id: "c", done: false, rank: 2 });
  await settled();
  assert.deepEqual(shown(), ["a", "c?", "b"]);
  assert.match(calls[0]?.headers["Idempotency-Key"] ?? "", /^[0-9a-f]{32}$/);
  calls[0]?.answer(201, { id: "c", version: 1, document: { _id: "c", done: false, rank: 9 } });
  assert.equal((await writing).version, 1);
  await settled();
  assert.deepEqual(shown(), ["a", "b", "c"]);
  socket.tell({
    type: "event",
    id: socket.name,
    seq: 1,
    match: "add",
    key: "c",
    version: 1,
    index: 2,
    document: { _id: "c", done: false, rank: 9 },
  });
  await settled();
  assert.deepEqual(shown(), ["a", "b", "c"]);
});

test("a rejected write is reverted and reports the reason", async () => {
  const { todos, calls, shown } = await stage();
  const writing = todos.update("a", { $set: { done: true } });
  await settled();
  assert.deepEqual(shown(), ["b"]);
  calls[0]?.answer(403, { code: "forbidden", status: 403, detail: "No." });
  await assert.rejects(writing, { code: "forbidden", message: "No." });
  await settled();
  assert.deepEqual(shown(), ["a", "b"]);
});

test("an event that arrives before the response to the write is not shown twice", async () => {
  const { todos, calls, shown, socket } = await stage();
  const writing = todos.insert({ _id: "c", done: false, rank: 2 });
  await settled();
  const document = { _id: "c", done: false, rank: 2 };
  socket.tell({
    type: "event",
    id: socket.name,
    seq: 1,
    match: "add",
    key: "c",
    version: 1,
    index: 1,
    document,
  });
  await settled();
  assert.deepEqual(shown(), ["a", "c?", "b"]);
  calls[0]?.answer(201, { id: "c", version: 1, document });
  await writing;
  await settled();
  assert.deepEqual(shown(), ["a", "c", "b"]);
});

test("a write that does not concern the query is released once silence proves it", async () => {
  const { todos, calls, shown, clock } = await stage({}, 3);
  const writing = todos.insert({ _id: "c", done: false, rank: 2 });
  await settled();
  calls[0]?.answer(201, { id: "c", version: 1, document: { _id: "c", done: false, rank: 2 } });
  await writing;
  await settled();
  assert.deepEqual(shown(), ["a", "c", "b"]);
  await clock.pass(3_100);
  assert.deepEqual(shown(), ["a", "b"]);
});

test("a write is shown in a row with lookups, which stay unchanged", async () => {
  const { todos, server, documents, shown, client } = await stage();
  const by = { _id: "ann", name: "Ann" };
  let last: QuerySnapshot<Doc> | undefined;
  const looking = todos.where("done", "==", false).lookup<Doc>("people", "owner", "by");
  looking.onSnapshot((snapshot) => {
    last = snapshot;
  });
  await settled();
  const { name } = server.last;
  const items = [row("a", 1, { done: false, owner: "ann", by })];
  server.last.tell({ type: "result", id: name, items, part: 0, last: true, resume: "r" });
  server.last.tell({ type: "ready", id: name, resume: "r" });
  await settled();
  todos.update("a", { $set: { rank: 7, owner: "bob" } }).catch(() => {});
  todos.insert({ _id: "c", done: false, rank: 2 }).catch(() => {});
  await settled();
  assert.deepEqual(last?.documents, [{ _id: "a", done: false, owner: "bob", rank: 7, by }]);
  assert.equal(last?.hasPendingWrites, true);
  todos.delete("a").catch(() => {});
  await settled();
  assert.deepEqual(last?.documents, []);
  assert.deepEqual(shown(), ["c?", "b"]);
  assert.equal(documents()?.length, 2);
  client.close();
});

test("writes of one document are sent in their order, others beside them", async () => {
  const { todos, calls } = await stage();
  todos.update("a", { $inc: { rank: 1 } }).catch(() => {});
  todos.update("a", { $inc: { rank: 1 } }).catch(() => {});
  todos.update("b", { $inc: { rank: 1 } }).catch(() => {});
  await settled();
  assert.deepEqual(
    calls.map(({ path }) => path.split("/").at(-1)),
    ["a", "b"],
  );
  calls[0]?.answer(200, { id: "a", version: 2, document: { _id: "a" } });
  for (let turn = 0; turn < 10; turn += 1) await settled();
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(calls.length, 3);
});

test("a call that broke off is repeated with the same idempotency key", async () => {
  const { todos, calls, clock } = await stage();
  const writing = todos.update("a", { $inc: { rank: 1 } });
  await settled();
  calls[0]?.breakOff();
  await clock.pass(1_000);
  calls[1]?.answer(200, { id: "a", version: 2, document: { _id: "a", rank: 2 } });
  assert.equal((await writing).version, 2);
  assert.equal(calls[0]?.headers["Idempotency-Key"], calls[1]?.headers["Idempotency-Key"]);
});

test("a change of many documents is retried with its key", async () => {
  const { todos, calls, clock } = await stage();
  const writing = todos.updateMany({ done: false }, { $inc: { rank: 1 } });
  await settled();
  calls[0]?.breakOff();
  await clock.pass(10_000);
  calls[1]?.answer(200, { matched: 2, changed: 2, complete: true });
  assert.deepEqual(await writing, { matched: 2, changed: 2, isComplete: true });
  const [first, second] = calls.map((call) => call.headers["Idempotency-Key"]);
  assert.ok(first !== undefined && first === second);
});

test("a call that takes too long is given up, and one that is aborted ends", async () => {
  const { todos, clock } = await stage();
  const late = assert.rejects(todos.get("a", { timeoutMs: 500 }), { code: "timeout" });
  await clock.pass(600);
  await late;
  const abort = new AbortController();
  const ended = assert.rejects(todos.get("a", { signal: abort.signal }), { name: "AbortError" });
  await settled();
  abort.abort();
  await ended;
});

test("queued writes wait for the network, keep their order, and survive the program", async () => {
  const queue = memoryQueue();
  const first = await stage({ queue });
  first.todos.insert({ _id: "c", done: false, rank: 5 }).catch(() => {});
  first.todos.update("c", { $set: { rank: 0 } }).catch(() => {});
  await settled();
  await settled();
  assert.deepEqual(first.shown(), ["c?", "a", "b"]);
  first.calls[0]?.breakOff();
  await settled();
  first.client.close();
  const second = await stage({ queue });
  await second.clock.pass(1);
  assert.deepEqual(second.shown(), ["c?", "a", "b"]);
  assert.equal(
    second.calls[0]?.headers["Idempotency-Key"],
    first.calls[0]?.headers["Idempotency-Key"],
  );
  second.calls[0]?.answer(201, {
    id: "c",
    version: 1,
    document: { _id: "c", done: false, rank: 5 },
  });
  await new Promise((resolve) => setImmediate(resolve));
  await second.clock.pass(1);
  assert.deepEqual(second.calls[1]?.body, { $set: { rank: 0 } });
});
