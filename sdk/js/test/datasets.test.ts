import assert from "node:assert/strict";
import { test } from "node:test";
import { Long } from "../src/index.js";
import { answering } from "./fakes.js";

const COMMITTED = {
  id: "u1",
  status: "committed",
  state: 1,
  stage: "unsorted",
  rows: 2,
  bytes: 80,
};

test("rows are uploaded as lines that name their table, under a key or an id", async () => {
  const { client, calls } = answering([COMMITTED, COMMITTED]);
  const posts = client.dataset("posts");
  const at = new Date(Date.UTC(2026, 0, 2));
  assert.deepEqual(await posts.upload("posts", [{ id: 2n ** 60n, at }, { id: 2 }]), COMMITTED);
  await posts.upload("posts", [{ id: new Long(7n), text: null }], { op: "update", id: "night" });
  assert.equal(calls[0]?.url, "http://db/v1/datasets/posts/uploads");
  assert.ok(calls[0]?.headers.get("Idempotency-Key"));
  assert.deepEqual((await calls[0]?.text())?.split("\n"), [
    '{"posts":{"id":1152921504606846976,"at":"2026-01-02T00:00:00.000Z"},"op":"insert"}',
    '{"posts":{"id":2},"op":"insert"}',
    "",
  ]);
  assert.equal(calls[1]?.url, "http://db/v1/datasets/posts/uploads?id=night");
  assert.equal(await calls[1]?.text(), '{"posts":{"id":7},"op":"update","null":["text"]}\n');
});

test("a number that NDJSON cannot represent is rejected before anything is sent", async () => {
  const { client, calls } = answering([]);
  await assert.rejects(client.dataset("m").upload("m", [{ x: Number.NaN }]), TypeError);
  assert.equal(calls.length, 0);
});

test("a query says how fresh its answer has to be, and is told how fresh it is", async () => {
  const read = { authority: { files: 1, files_skipped: 0, rows: 9 } };
  const answer = { rows: [{ author: "ada", posts: 3 }], state: 4, freshness_s: 0.5, read };
  const { client, calls } = answering([answer]);
  const found = await client.dataset("posts").query({
    table: "posts",
    groupBy: ["author"],
    aggregates: { posts: { op: "count" } },
    freshness: "any",
  });
  assert.deepEqual(found, { rows: answer.rows, state: 4, freshnessS: 0.5, read });
  assert.deepEqual(JSON.parse((await calls[0]?.text()) ?? ""), {
    table: "posts",
    aggregates: { posts: { op: "count" } },
    freshness: "any",
    group_by: ["author"],
  });
});

test("a statement in SQL is sent with its parameters, and its answer has its state", async () => {
  const columns = [{ name: "n", type: "BIGINT" }];
  const answer = { state: 4, freshness_s: 0.5, columns, rows: [{ n: 3 }], truncated: false };
  const { client, calls } = answering([answer, answer]);
  const posts = client.dataset("posts");
  const found = await posts.sql({
    sql: "SELECT count(*) AS n FROM posts WHERE id > $1",
    parameters: [7],
    asOf: new Date("2026-11-01T00:00:00Z"),
  });
  const { freshness_s: freshnessS, ...rest } = answer;
  assert.deepEqual(found, { ...rest, freshnessS });
  assert.deepEqual(JSON.parse((await calls[0]?.text()) ?? ""), {
    sql: "SELECT count(*) AS n FROM posts WHERE id > $1",
    parameters: [7],
    as_of: "2026-11-01T00:00:00.000Z",
  });
  await posts.sql("SELECT 1");
  assert.equal(await calls[1]?.text(), '{"sql":"SELECT 1"}');
  assert.match(calls[1]?.url ?? "", /\/v1\/datasets\/posts\/sql$/);
});
