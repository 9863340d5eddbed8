import assert from "node:assert/strict";
import { test } from "node:test";
import type { RowsSnapshot } from "../src/index.js";
import { answering, settled } from "./fakes.js";

interface Requests {
  readonly customer: string;
  readonly count: number;
  readonly [name: string]: unknown;
}

function item(customer: string, count: number): Record<string, unknown> {
  return { id: { customer }, version: null, document: { customer, count } };
}

test("events are added under a key, so that a repeated call adds them once", async () => {
  const { client, calls } = answering([{ applied: 2, repeated: 0 }]);
  const told = await client
    .aggregate("requests_5m")
    .add([{ customer: "acme" }, { customer: "bolt" }]);
  assert.deepEqual(told, { applied: 2, repeated: 0 });
  const [call] = calls;
  assert.equal(call?.url, "http://db/v1/aggregates/requests_5m/events");
  assert.ok(call?.headers.get("Idempotency-Key"));
});

test("a query contains its grouping, its start and its snapshot", async () => {
  const rows = [{ customer: "acme", count: 3 }];
  const { client, calls } = answering([{ rows, snapshot: "7" }]);
  const from = new Date(Date.UTC(2026, 0, 2));
  const answer = await client
    .aggregate<Requests>("requests_5m")
    .query({ groupBy: ["customer"], from, compare: "previous" }, { snapshot: "fresh" });
  assert.deepEqual(answer, { rows, snapshot: "7", asOf: null });
  assert.deepEqual(JSON.parse((await calls[0]?.text()) ?? ""), {
    compare: "previous",
    group_by: ["customer"],
    from: "2026-01-02T00:00:00.000Z",
    snapshot: "fresh",
  });
});

test("rows are shown and kept up to date, group by group", async () => {
  const { client, server } = answering();
  const shown: RowsSnapshot<Requests>[] = [];
  const stop = client
    .aggregate<Requests>("requests_5m")
    .on({ groupBy: ["customer"] }, (snapshot) => shown.push(snapshot));
  const socket = await server.answer([item("acme", 1), item("bolt", 2)]);
  assert.deepEqual(socket.all("subscribe")[0]?.group_by, ["customer"]);
  const event = (seq: number, index: number, members: Record<string, unknown>) =>
    socket.tell({
      type: "event",
      id: socket.name,
      seq,
      version: null,
      txn: { id: "9", index, count: 2 },
      ...members,
    });
  event(1, 0, {
    match: "change",
    key: { customer: "acme" },
    document: { customer: "acme", count: 5 },
  });
  await settled();
  assert.equal(shown.at(-1)?.rows[0]?.count, 1);
  event(2, 1, { match: "remove", key: { customer: "bolt" }, reason: "left", resume: "r1" });
  await settled();
  assert.deepEqual(shown.at(-1)?.rows, [{ customer: "acme", count: 5 }]);
  assert.equal(shown.at(-1)?.state, "live");
  stop();
  await settled();
  assert.equal(socket.all("unsubscribe").length, 1);
});

test("listeners receive an error when an aggregate is dropped", async () => {
  const { client, server } = answering();
  const shown: RowsSnapshot<Requests>[] = [];
  client.aggregate<Requests>("gone").on({}, (snapshot) => shown.push(snapshot));
  const socket = await server.answer([]);
  const error = { code: "not_found", status: 404, title: "There is no such thing" };
  socket.tell({ type: "end", id: socket.name, error });
  await settled();
  assert.equal(shown.at(-1)?.state, "failed");
  assert.equal(shown.at(-1)?.error?.message.includes("There is no such thing"), true);
});
