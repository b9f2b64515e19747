import assert from "node:assert/strict";
import { test } from "node:test";
import { parseCriLine } from "./cri-line.ts";
import type { LogLine } from "./cri-log.ts";
import { LineDecoding } from "./decoding.ts";

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);
const textOf = (line: LogLine): string => new TextDecoder().decode(line.text);
const raw = (text: string, tag = "F", stream = "stdout"): string =>
  `2026-11-20T14:00:00.000000001Z ${stream} ${tag} ${text}\n`;

test("a CRI line is parsed into its parts", () => {
  const entry = parseCriLine(bytesOf("2026-11-20T14:00:00.123456789+01:00 stderr F a  b "));
  assert.ok(entry);
  assert.equal(entry.time, "2026-11-20T14:00:00.123456789+01:00");
  assert.equal(entry.stream, "stderr");
  assert.equal(entry.partial, false);
  assert.equal(new TextDecoder().decode(entry.text), "a  b ");
});

test("an empty line and further tags are accepted", () => {
  assert.equal(parseCriLine(bytesOf("2026-11-20T14:00:00Z stdout F "))?.text.length, 0);
  assert.equal(parseCriLine(bytesOf("2026-11-20T14:00:00Z stdout F"))?.text.length, 0);
  assert.equal(parseCriLine(bytesOf("2026-11-20T14:00:00Z stdout P:x y"))?.partial, true);
});

test("text in another format is not a CRI line", () => {
  for (const text of [
    "",
    "hello",
    "2026-11-20T14:00:00Z stdin F x",
    "2026-11-20T14:00:00Z stdout",
    "x".repeat(25) + " stdout F x",
  ]) {
    assert.equal(parseCriLine(bytesOf(text)), undefined, text);
  }
});

test("partial lines are joined for each stream, for any fragmentation", () => {
  const text = raw("one ", "P") + raw("err", "F", "stderr") + raw("two", "F") + "torn\n" + raw("three");
  for (const size of [1, 7, 1000]) {
    const decoder = new LineDecoding(undefined);
    const bytes = bytesOf(text);
    const lines: LogLine[] = [];
    for (let at = 0; at < bytes.length; at += size) lines.push(...decoder.push(bytes.subarray(at, at + size)));
    assert.deepEqual(
      lines.map((line) => [line.stream, textOf(line)]),
      [
        ["stderr", "err"],
        ["stdout", "one two"],
        ["stdout", "torn"],
        ["stdout", "three"],
      ],
    );
  }
});

test("an endless line is returned in bounded pieces", () => {
  const decoder = new LineDecoding(undefined);
  const lines: LogLine[] = [];
  const piece = bytesOf(raw("x".repeat(16_000), "P"));
  for (let count = 0; count < 200; count++) lines.push(...decoder.push(piece));
  lines.push(...decoder.end());
  assert.equal(
    lines.reduce((sum, line) => sum + line.text.length, 0),
    200 * 16_000,
  );
  assert.deepEqual(
    lines.map((line) => [line.start, line.end]),
    [
      [true, false],
      [false, false],
      [false, false],
      [false, false],
    ].slice(0, lines.length),
  );
});

/** The lines of the pieces, each as stream, time and text; unfinished ones without a full stop. */
function joined(pieces: readonly LogLine[]): string[] {
  const lines: string[] = [];
  for (const { time, stream, text, start, end } of pieces) {
    const head = start ? `${stream} ${time} ` : (lines.pop() ?? "");
    lines.push(`${head}${new TextDecoder().decode(text)}${end ? "." : ""}`);
  }
  return lines;
}

test("a raw line of several MiB is one line of its stream and time, in bounded pieces", () => {
  const time = "2026-11-20T14:00:00.000000001Z";
  const long = "x".repeat(3 << 20);
  const bytes = bytesOf(
    raw(long) + raw("begun ", "P") + raw(long, "P") + raw("rest") + `${long}\n` + raw("next") + raw(long).trimEnd(),
  );
  for (const size of [1 << 16, 1 << 18, 999_999]) {
    const decoder = new LineDecoding(undefined);
    const pieces: LogLine[] = [];
    for (let at = 0; at < bytes.length; at += size) pieces.push(...decoder.push(bytes.subarray(at, at + size)));
    pieces.push(...decoder.end());
    const lines = [`${time} ${long}`, `${time} begun ${long}rest`, ` ${long}`, `${time} next`, `${time} ${long}`];
    // Not deepEqual: it would show megabytes.
    assert.ok(joined(pieces).join("\n") === lines.map((line) => `stdout ${line}.`).join("\n"), `in chunks of ${size}`);
    assert.ok(pieces.every(({ text }) => text.length <= (1 << 20) + size));
  }
});

test("invalid UTF-8 passes unchanged", () => {
  const decoder = new LineDecoding(undefined);
  const bytes = Buffer.concat([
    bytesOf("2026-11-20T14:00:00Z stdout F "),
    Buffer.from([0xff, 0xfe, 0x1b, 0x00]),
    bytesOf("\n"),
  ]);
  const [line] = decoder.push(bytes);
  assert.deepEqual([...(line?.text ?? [])], [0xff, 0xfe, 0x1b, 0x00]);
});
