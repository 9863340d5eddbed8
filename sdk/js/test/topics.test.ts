import assert from "node:assert/strict";
import { test } from "node:test";
import type { Publication, RillbaseError } from "../src/index.js";
import { answering, type FakeServer, settled } from "./fakes.js";

interface Incident {
  readonly kind: string;
}

const AT = "2023-11-14T22:13:00.000Z";
const EXPIRES_AT = "2023-11-14T23:13:00.000Z";

function members(name: string): Record<string, unknown> {
  const times = { at: AT, expires_at: EXPIRES_AT };
  return {
    version: null,
    position: `at-${name}`,
    ...times,
    topic_id: "1.4",
    document: { kind: name },
  };
}

function item(name: string): Record<string, unknown> {
  return { id: name, ...members(name) };
}

function publish(server: FakeServer, seq: number, name: string): void {
  const { last } = server;
  const frame = { type: "event", id: last.name, seq, match: "add", key: name, resume: `r${seq}` };
  last.tell({ ...frame, ...members(name) });
}

function subscribed() {
  const { client, clock, server } = answering();
  const kinds: (string | undefined)[] = [];
  const states: string[] = [];
  const errors: RillbaseError[] = [];
  const stop = client
    .topic<Incident>("traffic")
    .subscribe({ id: "1.4", from: "-1h" }, ({ data }) => kinds.push(data?.kind), {
      onState: (state) => states.push(state),
      onError: (error) => errors.push(error),
    });
  return { clock, server, kinds, states, errors, stop };
}

test("past publications arrive first, then later ones", async () => {
  const { server, kinds, states, stop } = subscribed();
  const socket = await server.answer([item("jam"), item("fog")]);
  const [{ type, id: _, ...message } = { type: "" }] = socket.all("subscribe");
  assert.equal(type, "subscribe");
  assert.deepEqual(message, { topic: "traffic", topic_id: "1.4", from: "-1h" });
  publish(server, 1, "accident");
  await settled();
  assert.deepEqual(kinds, ["jam", "fog", "accident"]);
  assert.deepEqual(states, ["live"]);
  stop();
  publish(server, 2, "ice");
  await settled();
  assert.equal(kinds.length, 3);
  assert.equal(socket.all("unsubscribe").length, 1);
});

test("a publication has its place, its times and its data", async () => {
  const { client, server } = answering();
  const publications: Publication<object>[] = [];
  const from = new Date(Date.UTC(2026, 0, 2));
  const geo = { center: [16, 48], radius_m: 500 } as const;
  client.topic("traffic").subscribe({ geo, from, unseenOnly: true, subscriber: "ann" }, (p) => {
    publications.push(p);
  });
  const socket = await server.answer([item("jam")]);
  const message = socket.all("subscribe")[0];
  assert.deepEqual(message?.geo, geo);
  assert.equal(message?.from, "2026-01-02T00:00:00.000Z");
  assert.equal(message?.unseen_only, true);
  assert.deepEqual(publications, [
    {
      publicationId: "jam",
      position: "at-jam",
      at: new Date(AT),
      expiresAt: new Date(EXPIRES_AT),
      id: "1.4",
      data: { kind: "jam" },
    },
  ]);
});

test("a subscription resumes after its last publication when the connection breaks", async () => {
  const { clock, server, kinds, states } = subscribed();
  await server.answer([item("jam")]);
  publish(server, 1, "fog");
  await settled();
  server.last.break();
  await clock.pass(1_000);
  const socket = await server.answer([]);
  assert.equal(socket.all("subscribe")[0]?.resume, "r1");
  publish(server, 2, "ice");
  await settled();
  assert.deepEqual(kinds, ["jam", "fog", "ice"]);
  assert.deepEqual(states, ["live", "offline", "connecting", "live"]);
});

test("a result after a reset repeats no publication", async () => {
  const { server, kinds } = subscribed();
  const socket = await server.answer([item("jam")]);
  publish(server, 1, "fog");
  socket.tell({ type: "reset", id: socket.name, reason: "expired" });
  const items = [item("jam"), item("fog"), item("ice")];
  socket.tell({ type: "result", id: socket.name, items, part: 0, last: true, resume: "r9" });
  publish(server, 1, "accident");
  await settled();
  assert.deepEqual(kinds, ["jam", "fog", "ice", "accident"]);
});

test("a subscription that reaches its end is not an error", async () => {
  const { server, states, errors } = subscribed();
  const socket = await server.answer([]);
  socket.tell({ type: "end", id: socket.name, error: null });
  await settled();
  assert.deepEqual(states, ["live", "ended"]);
  assert.deepEqual(errors, []);
});

test("a dropped topic is reported as an error", async () => {
  const { server, states, errors } = subscribed();
  const socket = await server.answer([]);
  const error = { code: "not_found", status: 404, detail: "The topic has been deleted." };
  socket.tell({ type: "end", id: socket.name, error });
  await settled();
  assert.equal(states.at(-1), "failed");
  assert.equal(errors[0]?.code, "not_found");
});

test("a publication is sent with a key and returns how many subscriptions it matched", async () => {
  const answer = { publication_id: "p1", position: "x", matched_subscribers: 3 };
  const { client, calls } = answering([answer]);
  const published = await client
    .topic<Incident>("traffic")
    .publish({ id: "1.4", data: { kind: "jam" }, expiresInS: 20 });
  assert.deepEqual(published, { publicationId: "p1", position: "x", matchedSubscribers: 3 });
  const [call] = calls;
  assert.equal(call?.url, "http://db/v1/topics/traffic/publications");
  assert.ok(call?.headers.get("Idempotency-Key"));
  assert.deepEqual(JSON.parse((await call?.text()) ?? ""), {
    id: "1.4",
    data: { kind: "jam" },
    expires_in_s: 20,
  });
});

test("an unknown option of a subscription is rejected", () => {
  const { client } = answering();
  const misspelt = { id: "1", since: "-1h" };
  assert.throws(() => client.topic("traffic").subscribe(misspelt, () => {}), /no option "since"/);
});
