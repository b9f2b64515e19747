import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../test/support/fast-check.ts";
import { LineDecoding, TextDecoding, type TextOptions } from "./decoding.ts";

const times = ["2026-11-20T14:00:00Z", "2026-11-20T14:00:00.000000001+01:00", "2027-01-01T00:00:00.5Z"] as const;

/** Lines as runtimes write them, cut ones and torn ones among them, and lines that only look like some. */
const rawLine = fc.oneof(
  fc
    .record({
      time: fc.constantFrom(...times),
      stream: fc.constantFrom("stdout", "stderr"),
      tag: fc.constantFrom("F", "P", "F:x", "P:x:y"),
      text: fc.string({ maxLength: 40 }),
    })
    .map(({ time, stream, tag, text }) => `${time} ${stream} ${tag} ${text.replaceAll("\n", " ")}\n`),
  fc.constantFrom("torn\n", "\n", `${times[0]} stdout\n`, `${times[0]} stdin F x\n`, `${times[0]} stderr F\n`),
);

const options = fc.record<TextOptions>({
  stream: fc.constantFrom(undefined, "stdout", "stderr"),
  timestamps: fc.boolean(),
  include: fc.constantFrom(undefined, (time: string) => time.startsWith("2026")),
});

/** What a client gets of lines. */
function rendered(
  decoding: LineDecoding,
  chunks: readonly Uint8Array[],
  { stream: wanted, timestamps }: TextOptions,
): string {
  const lines = [...chunks.flatMap((chunk) => decoding.push(chunk)), ...decoding.end()];
  return lines
    .filter(({ stream }) => wanted === undefined || stream === wanted)
    .map(({ time, text, start, end }) => {
      return `${timestamps && start && time !== "" ? `${time} ` : ""}${Buffer.from(text).toString()}${end ? "\n" : ""}`;
    })
    .join("");
}

test("the text of a log is that of its lines, however its bytes are cut and whatever is left out", () => {
  fc.assert(
    fc.property(
      fc.array(rawLine, { maxLength: 30 }),
      fc.integer({ min: 1, max: 200 }),
      options,
      fc.nat({ max: 5 }),
      (raw, size, wanted, skip) => {
        const bytes = Buffer.from(raw.join(""));
        const chunks: Uint8Array[] = [];
        for (let at = 0; at < bytes.length; at += size) chunks.push(bytes.subarray(at, at + size));
        const [lines, text] = [new LineDecoding(wanted.include), new TextDecoding(wanted)];
        lines.skip = text.skip = skip;
        const pieces = [...chunks.map((chunk) => text.push(chunk)), text.end()];
        assert.equal(Buffer.concat(pieces).toString(), rendered(lines, chunks, wanted));
      },
    ),
  );
});

test("text that was given does not change when more is read", () => {
  const decoding = new TextDecoding({ stream: undefined, timestamps: false, include: undefined });
  const first = decoding.push(Buffer.from(`${times[0]} stdout F one\n`));
  decoding.push(Buffer.from(`${times[0]} stdout F two\n`));
  assert.equal(Buffer.from(first).toString(), "one\n");
});
