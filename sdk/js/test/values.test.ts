import assert from "node:assert/strict";
import { test } from "node:test";
import { idSegment } from "../src/ejson/path.js";
import {
  Binary,
  Bound,
  Decimal128,
  Double,
  encode,
  Long,
  ObjectId,
  parse,
  parseTyped,
  printTyped,
  RegularExpression,
  stringify,
  Timestamp,
} from "../src/index.js";
import { compare } from "../src/local/compare.js";
import { matches } from "../src/local/matcher.js";
import { merged, updated } from "../src/local/update.js";

test("every type survives a round trip to the server", () => {
  const document = {
    id: new ObjectId("0123456789abcdef01234567"),
    price: new Decimal128("1.10"),
    big: new Long("9007199254740993"),
    bytes: new Binary(Uint8Array.from([0, 255]), 4),
    at: new Date(0),
    before: new Date(-1),
    stamp: new Timestamp(1, 2),
    pattern: new RegularExpression("^a", "i"),
    first: Bound.MIN,
    last: Bound.MAX,
    list: [1, "a", null, true, { x: 1.5 }],
  };
  assert.deepEqual(parse(stringify(document)), document);
});

test("numbers keep their value, and bigints and wholes as doubles their type", () => {
  assert.equal(
    stringify([1, 1.5, Number.NaN, -0]),
    '[1,1.5,{"$numberDouble":"NaN"},{"$numberDouble":"-0.0"}]',
  );
  assert.equal(stringify(2n ** 60n), '{"$numberLong":"1152921504606846976"}');
  assert.equal(stringify(new Double(2)), '{"$numberDouble":"2.0"}');
  assert.ok(Number.isNaN(parse('{"$numberDouble":"NaN"}')));
});

test("whole numbers beyond 2^53 are read exactly, in a text as in a wrapper", () => {
  const text = '{"a":9007199254740993,"b":[-9223372036854775808],"c":"9007199254740993","d":2.5}';
  const parsed = parse(text) as Record<string, unknown>;
  assert.deepEqual(parsed.a, new Long("9007199254740993"));
  assert.deepEqual(parsed.b, [new Long("-9223372036854775808")]);
  assert.deepEqual([parsed.c, parsed.d], ["9007199254740993", 2.5]);
  assert.equal(parse("9007199254740991"), Number.MAX_SAFE_INTEGER);
  assert.equal(parse("3.0"), 3);
  assert.equal(parse("18446744073709551616"), 2 ** 64);
  assert.deepEqual(parse('"a \\"9007199254740993"'), 'a "9007199254740993');
});

test("a text that is read with its types is printed as it was", () => {
  for (const text of [
    "9007199254740993",
    "-9223372036854775808",
    "3000000000",
    "7",
    "3.0",
    "2.5",
    "-0.0",
    "1e+300",
    '{"$numberLong":"7"}',
    '{"$numberDouble":"NaN"}',
    '{"$numberDouble":"-Infinity"}',
    '{"$numberDecimal":"1.10"}',
    '{"$date":"2026-11-21T00:00:00.000Z"}',
    '{"$date":{"$numberLong":"-1"}}',
    '{"$date":{"$numberLong":"9223372036854775807"}}',
    '{"$binary":{"base64":"AP8=","subType":"04"}}',
    '{"$oid":"0123456789abcdef01234567"}',
    '{"$timestamp":{"t":4294967295,"i":1}}',
    '{"$regularExpression":{"pattern":"^a","options":"i"}}',
    '{"$symbol":"s"}',
    '{"$minKey":1}',
    '["9007199254740993",null,true,[],{},[3.0,{"a":1}]]',
  ]) {
    assert.equal(printTyped(parseTyped(text)), text);
  }
  assert.equal(printTyped(parseTyped("1.0e2")), "100.0");
  assert.equal(printTyped(parseTyped('{"$numberDouble":"3.0"}')), "3.0");
  assert.equal(printTyped(parseTyped('{"$numberLong":"9007199254740993"}')), "9007199254740993");
});

test("a text over several lines is indented as JSON is", () => {
  const value = { a: [1, { b: null }], c: {}, d: [], e: "x" };
  assert.equal(printTyped(value, 2), JSON.stringify(value, null, 2));
});

test("texts and numbers that cannot be stored as they are written are refused", () => {
  assert.throws(() => stringify(2n ** 63n), /does not fit into 64 bits/);
  assert.throws(() => parse('{"$numberInt":"2147483648"}'), /is not an integer of 32 bits/);
  assert.throws(() => parse('{"$numberDouble":"three"}'), /is not a number/);
  assert.throws(() => parse("{9007199254740993}"), SyntaxError);
  assert.throws(() => parse("[09007199254740993]"), SyntaxError);
});

test("fields that are undefined are left out, and what cannot be stored is refused", () => {
  assert.deepEqual(encode({ a: undefined, b: null }), { b: null });
  assert.throws(() => encode({ f: () => 1 }), TypeError);
  assert.throws(() => encode(new Date(Number.NaN)), TypeError);
  const circle: Record<string, unknown> = {};
  circle.self = circle;
  assert.throws(() => encode(circle), TypeError);
});

test("a field called __proto__ is a field", () => {
  const found = parse('{"__proto__": {"admin": true}}') as { admin?: boolean };
  assert.equal(found.admin, undefined);
  assert.equal(stringify(found), '{"__proto__":{"admin":true}}');
});

test("ids in URLs are those that the API expects", () => {
  assert.equal(idSegment("a/b c"), "a%2Fb%20c");
  assert.equal(idSegment(new ObjectId("0123456789abcdef01234567")), "0123456789abcdef01234567");
  assert.equal(idSegment("0123456789abcdef01234567"), "~%220123456789abcdef01234567%22");
  assert.equal(idSegment(7), "~7");
  assert.equal(idSegment(""), "~%22%22");
});

test("values sort as the server sorts them", () => {
  const ordered = [
    Bound.MIN,
    null,
    Number.NaN,
    -1,
    2,
    new Decimal128("2.5"),
    3,
    "",
    "a",
    "b",
    "\u{ffff}",
    "\u{1f600}",
    { a: 1 },
    { a: 2 },
    [1],
    new Binary(Uint8Array.of(1)),
    new ObjectId("0".repeat(24)),
    false,
    true,
    new Date(1),
    new Timestamp(1, 1),
    new RegularExpression("a"),
    Bound.MAX,
  ];
  const shuffled = [...ordered].reverse().sort(compare);
  assert.deepEqual(shuffled, ordered);
});

test("a filter is judged where that is certain, and only there", () => {
  const document = {
    n: 3,
    tags: ["x", "y"],
    in: { side: [{ v: 1 }, { v: 2 }] },
    at: new Date(5),
    grid: [[1]],
  };
  const cases: [Record<string, unknown>, boolean | undefined][] = [
    [{}, true],
    [{ n: 3 }, true],
    [{ n: { $gt: 2, $lte: 3 } }, true],
    [{ n: { $gt: "2" } }, false],
    [{ tags: "x" }, true],
    [{ tags: ["x", "y"] }, true],
    [{ tags: { $size: 3 } }, false],
    [{ "in.side.v": 2 }, true],
    [{ "in.side.0.v": 2 }, false],
    [{ "grid.0": 1 }, undefined],
    [{ missing: null }, true],
    [{ missing: { $exists: true } }, false],
    [{ n: { $in: [1, 3] } }, true],
    [{ $or: [{ n: 1 }, { tags: "y" }] }, true],
    [{ $nor: [{ n: 3 }] }, false],
    [{ at: { $lt: new Date(6) } }, true],
    [{ n: { $mod: [2, 1] } }, undefined],
    [{ n: 4, tags: { $regex: "x" } }, false],
    [{ $or: [{ n: 3 }, { n: { $mod: [2, 1] } }] }, true],
    [{ n: { $not: { $gt: 5 } } }, true],
  ];
  for (const [filter, wanted] of cases) {
    assert.equal(matches(filter, document), wanted, JSON.stringify(filter));
  }
});

test("updates are foreseen where that is certain, and only there", () => {
  const before = { n: 1, list: [1, 2], in: { a: 1 } };
  assert.deepEqual(updated(before, { $set: { "in.b": 2 }, $inc: { n: 2, m: 1 } }), {
    n: 3,
    m: 1,
    list: [1, 2],
    in: { a: 1, b: 2 },
  });
  assert.deepEqual(updated(before, { $push: { list: 3 }, $unset: { n: "", "x.y": "" } }), {
    list: [1, 2, 3],
    in: { a: 1 },
  });
  assert.equal(updated(before, { $set: { "list.0": 5 } }), undefined);
  assert.equal(updated(before, { $currentDate: { at: true } }), undefined);
  assert.deepEqual(merged(before, { n: null, in: { a: null, c: 1 } }), {
    list: [1, 2],
    in: { c: 1 },
  });
  assert.deepEqual(before, { n: 1, list: [1, 2], in: { a: 1 } });
});
