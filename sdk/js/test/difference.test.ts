import assert from "node:assert/strict";
import { test } from "node:test";
import { difference, type Item, type ItemChange } from "../src/live/snapshot.js";

interface Row {
  readonly key: string;
  readonly item: Item<number>;
}

function row(key: string, version = 1): Row {
  return { key, item: { id: key, version, document: version, isPending: false } };
}

const rows = (keys: string) => [...keys].map((key) => row(key));

function brief(changes: readonly ItemChange<number>[]): string[] {
  return changes.map(
    ({ type, item, index, oldIndex }) => `${type} ${item.id} ${oldIndex}>${index}`,
  );
}

test("a changed row is the only change", () => {
  const after = rows("abcd").with(2, row("c", 2));
  assert.deepEqual(brief(difference(rows("abcd"), after)), ["change c 2>2"]);
});

test("rows at both ends are reported with their former places when the middle shrinks or grows", () => {
  assert.deepEqual(brief(difference(rows("abcd"), rows("acd"))), ["remove b 1>-1"]);
  const after = [row("a", 2), ...rows("xbc"), row("d", 2)];
  assert.deepEqual(brief(difference(rows("abcd"), after)), [
    "change a 0>0",
    "add x -1>1",
    "change d 3>4",
  ]);
});

test("a row that passes others has moved, and the others have not", () => {
  assert.deepEqual(brief(difference(rows("abcde"), rows("adbce"))), ["move b 1>2", "move c 2>3"]);
  assert.deepEqual(brief(difference(rows("abcde"), rows("acdbe"))), ["move b 1>3"]);
});

test("changes name the former place of every row, and the rows that went", () => {
  let seed = 7;
  const random = (below: number) => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed % below;
  };
  const list = () => {
    const keys = [..."abcdefgh"].filter(() => random(4) > 0);
    if (random(2) === 0) keys.sort(() => random(3) - 1);
    return keys.map((key) => row(key, random(5) === 0 ? 2 : 1));
  };
  for (let round = 0; round < 500; round += 1) {
    const before = list();
    const after = list();
    const changes = difference(before, after);
    const places = new Map(before.map(({ key }, place) => [key, place]));
    const gone = before.filter(({ key }) => !after.some((other) => other.key === key));
    const removed = changes.filter(({ type }) => type === "remove");
    assert.deepEqual(
      removed.map(({ item }) => item.id),
      gone.map(({ key }) => key),
    );
    let reached = -1;
    const expected = after.flatMap(({ key, item }, index) => {
      const from = places.get(key);
      if (from === undefined) return [`add ${key} -1>${index}`];
      const isMove = from < reached;
      reached = Math.max(reached, from);
      const isSame = before[from]?.item.version === item.version;
      return isSame && !isMove ? [] : [`${isMove ? "move" : "change"} ${key} ${from}>${index}`];
    });
    assert.deepEqual(brief(changes.slice(removed.length)), expected);
  }
});
