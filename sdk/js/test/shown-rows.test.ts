import assert from "node:assert/strict";
import { test } from "node:test";
import type { EventFrame } from "../src/live/frames.js";
import { View } from "../src/live/view.js";
import { overlaid, shownRow } from "../src/local/overlay.js";
import { type Operation, Pending } from "../src/local/writes.js";

const SPEC = { collection: "things", filter: {} };

/** Events that insert, move and remove rows at places that differ from step to step. */
function* events(count: number): Generator<EventFrame> {
  const keys: number[] = [];
  for (let seq = 1; seq <= count; seq += 1) {
    const place = (seq * 7) % (keys.length + 1);
    const kind = seq % 5;
    const key = kind < 3 || keys[place] === undefined ? seq : (keys[place] as number);
    const before = keys.indexOf(key);
    if (before >= 0) keys.splice(before, 1);
    const shared = { type: "event", id: "q", seq, key, version: seq } as const;
    if (before >= 0 && kind === 4) {
      yield { ...shared, match: "remove" } as EventFrame;
      continue;
    }
    const index = (seq * 5) % (keys.length + 1);
    keys.splice(index, 0, key);
    const match = before < 0 ? "add" : "changeIndex";
    yield { ...shared, match, index, document: { n: seq } } as unknown as EventFrame;
  }
}

test("the rows that are shown follow every event, and a copy of them is returned", () => {
  const view = new View();
  for (const event of events(300)) {
    assert.equal(view.event(event).kind, "changed");
    assert.deepEqual(view.shown, view.rows.map(shownRow));
  }
  assert.ok(view.rows.length > 20);
  const answer = overlaid(view.shown, [], SPEC);
  assert.notEqual(answer, view.shown);
  // The same objects: a row that has not changed is not rendered again.
  assert.ok(answer.every((shown, place) => shown === view.shown[place]));
});

const CHANGES: Record<string, Operation> = {
  insert: { kind: "insert", collection: "things", id: "e", document: { n: 1 } },
  update: {
    kind: "update",
    collection: "things",
    id: "b",
    change: { $set: { n: 2 } },
    upsert: false,
    isForeseeable: true,
  },
};

for (const [by, direction, changes, expected] of [
  ["$updated", -1, ["update"], "bcad"],
  ["$updated", 1, ["update"], "cadb"],
  ["$updated", -1, ["insert", "update"], "beca"],
  ["$updated", -1, ["update", "insert"], "ebca"],
  ["$created", -1, ["update"], "cbad"],
  ["$created", 1, ["insert", "update"], "cbad"],
  ["$created", -1, ["insert"], "ecba"],
] as const) {
  test(`pending writes are the latest by ${by} ${direction}: ${changes.join(", ")}`, () => {
    const view = new View();
    const items = ["c", "b", "a", "d"].map((id) => ({ id, version: 1, document: { n: 1 } }));
    view.result({ type: "result", id: "q", items, part: 0, last: true });
    const pending = changes.map((name) => new Pending(CHANGES[name] as Operation));
    const answer = overlaid(view.shown, pending, { ...SPEC, sort: [[by, direction]], limit: 4 });
    assert.equal(answer.map(({ item }) => item.id).join(""), expected);
  });
}
