import assert from "node:assert/strict";
import { test } from "node:test";
import { scalarInputs } from "../../test/support/scalar-inputs.ts";
import { seedOfTest } from "../../test/support/seed.ts";
import { parseDocuments } from "./documents.ts";

const values = (text: string): unknown[] => {
  const { documents, errors } = parseDocuments(text, "f");
  assert.deepEqual(errors, []);
  return documents.map(({ value }) => value);
};
const messages = (text: string): string[] => parseDocuments(text, "f").errors.map((error) => error.message);

test("a document of a YAML version other than 1.1 is rejected, and the others are read", () => {
  for (const version of ["1.2", "1.3", "2.0"]) {
    const { documents, errors } = parseDocuments(`a: 1\n...\n%YAML ${version}\n---\nmode: 0400\n---\nb: yes\n`, "f");
    assert.deepEqual(
      documents.map(({ value }) => value),
      [{ a: 1 }, { b: true }],
    );
    assert.deepEqual(
      errors.map((error) => error.message),
      [`f:3:1: found incompatible YAML document: "%YAML ${version}"; Kubernetes reads 1.1: remove the line`],
    );
  }
  assert.deepEqual(values("%YAML 1.1\n---\nmode: 0400\n"), [{ mode: 0o400 }]);
  assert.match(messages("%FOO\n---\na: 1\n")[0] ?? "", /f:1:1: a line that starts with % is a YAML directive/);
});

test("a byte order mark may precede any document, and positions after it are right", () => {
  const mark = "\ufeff";
  assert.deepEqual(values(`${mark}a: 1\nb: 2\n---\n${mark}c: 3\nd: 4\n${mark}---\ne: 5\n`), [
    { a: 1, b: 2 },
    { c: 3, d: 4 },
    { e: 5 },
  ]);
  assert.deepEqual(values(`${mark}{"a": 1}\n${mark}{"b": 2}\n---\r\n${mark}c: 3\n`), [{ a: 1 }, { b: 2 }, { c: 3 }]);
  assert.deepEqual(values(`a: |\n  ${mark}---\n`), [{ a: `${mark}---\n` }], "inside of a text it is a character");
  const { documents } = parseDocuments(`a: 1\n---\n${mark}b: 2\nc: 3\n`, "f");
  assert.deepEqual(documents[1]?.origin.locate(["c"]), { line: 4, column: 1 });
});

test("JSON values may follow one another with and without separators", () => {
  const text = '{"a": "}{"}{"b": [1,\n{"c": "\\/\\ud83d\\ude00\\ud800"}]}\n\n{"d": 1}\n---\n{"e": 1}\n---\nf: 1\n';
  assert.deepEqual(values(text), [{ a: "}{" }, { b: [1, { c: "/😀\ufffd" }] }, { d: 1 }, { e: 1 }, { f: 1 }]);
  const { documents } = parseDocuments(text, "f");
  assert.deepEqual(documents[1]?.origin.locate(["b", 1, "c"]), { line: 2, column: 2 });
  assert.deepEqual(documents[2]?.origin.locate(["d"]), { line: 4, column: 2 });
  assert.match(messages('{"a": 1}\n{"b": }}\n')[0] ?? "", /^f:2:\d+: /);
  assert.deepEqual(messages('{"a": 1e400}'), ["f:1:7: a: the number is too large"]);
});

test("a merge key overrides fields above it, and fields below override it, as in Kubernetes", () => {
  assert.deepEqual(values("a: 1\n<<: {a: 2, b: 2, c: 2}\nc: 3\n"), [{ a: 2, b: 2, c: 3 }]);
  assert.deepEqual(values("<<: [{a: 1}, {a: 2, b: 2}]\n"), [{ a: 1, b: 2 }]);
  assert.deepEqual(values('"<<": 1\n'), [{ "<<": 1 }]);
  assert.deepEqual(messages("<<: 5\na: 1\n"), ["f:1:5: << needs a map or a list of maps"]);
});

test("keys that are not strings in JSON are rejected, and those that print alike are duplicates", () => {
  assert.deepEqual(messages("a: {~: 1, ? : 2}\n"), [
    'f:1:5: a: a key must be a string, not nothing; an empty one is ""',
    'f:1:13: a: a key must be a string, not nothing; an empty one is ""',
  ]);
  assert.deepEqual(messages("9223372036854775808: 1\n"), [
    "f:1:1: a key that is a number must fit 64 bits; put it in quotes",
  ]);
  assert.deepEqual(messages("0x10: 1\n16: 2\n"), ["f:2:1: [16]: is a duplicate key"]);
  assert.deepEqual(values("e1: 1\ne2: 2\n.: 3\n"), [{ e1: 1, e2: 2, ".": 3 }]);
});

test("invalid values are reported with their position", () => {
  const infinite = "infinities and .nan are not allowed; a string needs quotes";
  assert.deepEqual(messages("a: .inf\nb: [!!float -.INF]\n"), [`f:1:4: a: ${infinite}`, `f:2:13: b[0]: ${infinite}`]);
  assert.deepEqual(messages('a: !!int "x"\n'), ["f:1:10: a: the value does not match its tag !!int"]);
  assert.deepEqual(messages("a: !!binary x\n"), ["f:1:13: a: the tag !!binary needs base64"]);
  const escape = "unknown escape sequence in a double-quoted string; use single quotes for a literal backslash";
  assert.deepEqual(messages('a: "\\d"\nb: "\\/"\nc: "\\ud83d\\ude00"\n'), [
    `f:1:4: a: ${escape}`,
    `f:2:4: b: ${escape}`,
    `f:3:4: c: ${escape}`,
  ]);
  assert.match(messages("a: &b.c\n")[0] ?? "", /a string that starts with & needs quotes/);
});

test("escapes and folding in double-quoted scalars follow YAML 1.1", () => {
  assert.deepEqual(values('a: "it\\\'s \\x41\\u00e9\\U0001F600\\_\\N\\\t\\\\n"\n'), [
    { a: "it's Aé😀\u00a0\u0085\t\\n" },
  ]);
  assert.deepEqual(values('a: "b \\n\n  c\n\n\n  d  \\\n  \\ e"\n'), [{ a: "b \n c\n\nd   e" }]);
});

test("an error for text that lacks quotes explains why it needs them", () => {
  const colon = "invalid YAML: a bracket is not closed, or a string with a colon lacks quotes";
  assert.deepEqual(messages("{name: a, value: :2112}\n"), [`f:1:18: ${colon}`]);
  assert.deepEqual(messages("[a: b: c]\n"), [`f:1:6: ${colon}`]);
  assert.deepEqual(messages("{path: /a?b}\n"), ["f:1:8: in brackets a string with a question mark needs quotes"]);
  assert.match(messages("a: %b\n")[0] ?? "", /^f:1:4: a string that starts with .* needs quotes$/u);
});

test("integers are exact beyond the precision of numbers", () => {
  assert.deepEqual(values("[9007199254740991, 9007199254740993, 0xFFFFFFFFFFFFFFFF, -9223372036854775808]"), [
    [Number.MAX_SAFE_INTEGER, 9007199254740993n, 2n ** 64n - 1n, -(2n ** 63n)],
  ]);
});

test("a scalar has the same value in a map, in a list and as an alias", () => {
  const seed = seedOfTest();
  for (const scalar of scalarInputs(seed, 400)) {
    const [map, list] = [`a: ${scalar}\n`, `- ${scalar}\n`].map((text) => parseDocuments(text, "f"));
    const value = map?.documents[0]?.value;
    // A leading dash makes it a list there.
    if (map?.errors.length !== 0 || /^-\s/u.test(scalar)) continue;
    assert.deepEqual([(value as { a: unknown }).a], list?.documents[0]?.value, scalar);
  }
});

test("many marks, open braces and float keys finish quickly", () => {
  for (const text of ["\ufeff{\n".repeat(10_000), "{".repeat(20_000), '{"a":1}'.repeat(5000)]) {
    parseDocuments(text, "f");
  }
  // Each of these takes minutes where something is rescanned from each of its characters or lines.
  for (const [open, each, end] of [
    ["a: [\n", "x,\n", "]"],
    ["a: b", " ", "c"],
    ['a: "b', " ", 'c\\n"'],
    ["a: b", "\n ", "c"],
    ['a: "', "\\\\", '"'],
    ["a: |\n x\n", " \n", ""],
  ] as const) {
    assert.deepEqual(messages(open + each.repeat(100_000) + end), []);
  }
  for (const each of ["---\n`\n", "a: 1\n", "- *a\n", '---\n"\n', "%A\n---\n", "...\n"]) {
    assert.ok(messages(each.repeat(60_000)).length <= 1001);
  }
  const keys = Array.from({ length: 5000 }, (_, index) => `${index}.5e-20: x`).join("\n");
  assert.deepEqual(messages(keys), []);
});

test("a long scalar is decoded once however many aliases refer to it, and their total size is bounded", () => {
  // These take minutes, or all memory, where each alias is decoded separately.
  const aliases = (named: string, count: number): string => `[&a ${named}, ${"*a,".repeat(count)}]`;
  assert.deepEqual(values(aliases(`"\\n${"b".repeat(1000)}"`, 10_000)), [Array(10_001).fill(`\n${"b".repeat(1000)}`)]);
  assert.deepEqual(values(`{a: &a ${"1".repeat(1000)}, b: {? *a : *a}}`), [
    { a: "1".repeat(1000), b: { ["1".repeat(1000)]: "1".repeat(1000) } },
  ]);
  const tooLong = "holds more than 20971520 characters after alias expansion";
  for (const named of [`"\\n${"b".repeat(250_000)}"`, "1".repeat(250_000), `!!str ${"b".repeat(250_000)}`]) {
    const [message = "", ...others] = messages(aliases(named, 20_000));
    assert.ok(message.endsWith(tooLong), message);
    assert.deepEqual(others, []);
  }
  assert.deepEqual(messages(`&k ${"b".repeat(1000)}: [${"{*k : 1},".repeat(22_000)}]`).length, 1);
  // An invalid scalar is reported for each.
  assert.equal(messages(aliases(`"\\q${"b".repeat(20_000)}"`, 5_000)).length, 1000);
});

test("the fields of merge keys count as values", () => {
  const chain = (length: number): string =>
    Array.from({ length }, (_, index) => `a${index + 1}: &a${index + 1} {<<: *a${index}, k${index}: 1}\n`).join("");
  assert.deepEqual(messages(`a0: &a0 {k: 1}\n${chain(60)}`), []);
  assert.deepEqual(messages(`a0: &a0 {k: 1}\n${chain(1000)}`), [
    "f:81:16: a111: holds more than 250000 values after alias expansion",
  ]);
});

test("a long key is truncated in an error's field path", () => {
  for (const text of [`{"${"k".repeat(100_000)}": 1e999}`, `? ${"k".repeat(100_000)}\n: .nan\n`]) {
    const [message = ""] = messages(text);
    assert.match(message, /^f:\d+:\d+: \[k{80}…\]: /u);
  }
});

test("continuation lines of quotes and brackets may begin anywhere, and keep their positions", () => {
  for (const end of ["\n", "\r\n"]) {
    const text = [
      "metadata:",
      "  annotations:",
      "    networks: '[",
      '      {"name": "it\'\'s"}',
      "    ]'",
      '    other: "a \\',
      "b",
      "",
      'c"',
      "  labels: {",
      "  a: b, # c",
      "# d",
      "  e: f",
      "  }",
      "  args: [",
      "x, y",
      "]",
      "  last: 1",
    ].join(end);
    assert.deepEqual(values(text), [
      {
        metadata: {
          annotations: { networks: '[ {"name": "it\'s"} ]', other: "a b\nc" },
          ...{ labels: { a: "b", e: "f" }, args: ["x", true], last: 1 },
        },
      },
    ]);
    const { documents } = parseDocuments(text, "f");
    assert.deepEqual(documents[0]?.origin.locate(["metadata", "labels", "e"]), { line: 13, column: 3 });
    assert.deepEqual(documents[0]?.origin.locate(["metadata", "last"]), { line: 18, column: 3 });
  }
  assert.match(messages('a: "b\nc: 1\nd: "x"\n')[0] ?? "", /^f:1:4: .*a closing quote/u, "a missing quote is none");
  assert.match(messages("a: [b\nc: d\n")[0] ?? "", /^f:2:2: .*a bracket is not closed/u);
});

test("a block scalar at the end of the text ends in a line break only where the text does", () => {
  for (const [block, value] of [
    ["|\n  x", "x"],
    ["|\n  x\n", "x\n"],
    ["|+\n  x", "x"],
    [">\n  x\n  y", "x y"],
    ["|\r\n  x\r\n  y", "x\ny"],
    ["|\n  x\n    ", "x\n  "],
    ["|\n  x\n ", "x\n"],
    ["|", ""],
  ]) {
    assert.deepEqual(values(`a: ${block}`), [{ a: value }], JSON.stringify(block));
  }
});

test("line breaks known only to YAML 1.1 are recognised", () => {
  assert.deepEqual(values("a: |\r  x\r  y\rb: 1\r"), [{ a: "x\ny\n", b: 1 }]);
  assert.deepEqual(values("a: 'b \u0085 c'\nd: \"e\u0085 \u0085f\"\n"), [{ a: "b c", d: "e\nf" }]);
  assert.deepEqual(values("a: 'b \u2028 c'\nd: \"e \\n \u2029 f\"\n"), [{ a: "b\u2028c", d: "e \n\u2029f" }]);
  assert.deepEqual(values("a: b # c\u2029d: e\u0085f: |\u0085  g\u2028  h\n"), [{ a: "b", d: "e", f: "g\u2028h\n" }]);
  assert.deepEqual(values('{"a": "b\u2028 c"}'), [{ a: "b\u2028 c" }], "JSON has none of them");
});

test("no error quotes text, which may be an unquoted secret", () => {
  const secret = "hunter2";
  const marks = [
    "*",
    "&",
    "!",
    "!!int ",
    "!<",
    "%",
    "@",
    "`",
    "|",
    ">",
    "&a ",
    "'",
    '"',
    '"\\q',
    "!!binary ",
    "? ",
    "[",
    "{",
    "- ",
    "a: b: ",
  ];
  for (const mark of marks) {
    for (const text of [`a: ${mark}${secret}\n`, `- ${mark}${secret}?\n`, `%YAML ${secret}\n---\na: *${secret}\n`]) {
      for (const message of messages(text)) assert.ok(!message.includes(secret), `${text}: ${message}`);
    }
  }
  assert.deepEqual(messages(`a: *${secret}\n`), [
    "f:1:4: a: an alias without an anchor above it; a string that starts with * needs quotes",
  ]);
});

test("a JSON value may be as long as a file", () => {
  assert.deepEqual(values(`{"a": "${"x".repeat(9_000_000)}"}`).length, 1);
});

test("problems of later documents are reported separately where only the first counts", () => {
  const later: string[] = [];
  const onLaterError = ({ message }: { message: string }): void => void later.push(message);
  const { documents, errors } = parseDocuments("a: 1\n---\nb: *c\n---\nd: 'e\n", "f", { onLaterError });
  assert.deepEqual([documents.length, errors.length, later.length], [1, 0, 2]);
  assert.equal(parseDocuments("a: *c\n---\nb: 1\n", "f", { onLaterError }).errors.length, 1);
});
