import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../test/support/fast-check.ts";
import { LineDecoding, TextDecoding, type TextOptions } from "./decoding.ts";

const times = ["2026-11-20T14:00:00Z", "2026-11-20T14:00:00.000000001+01:00", "2027-01-01T00:00:00.5Z"] as const;

/** As clients get them. */
const shown: ReadonlyMap<string, string> = new Map([
  [times[0], "2026-11-20T14:00:00.000000000Z"],
  [times[1], times[1]],
  [times[2], "2027-01-01T00:00:00.500000000Z"],
]);

/** Lines as runtimes write them, including partial and torn ones, and text that only looks like them. */
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

/** The expected text for a client. */
function rendered(
  decoding: LineDecoding,
  chunks: readonly Uint8Array[],
  { stream: wanted, timestamps }: TextOptions,
): string {
  const lines = [...chunks.flatMap((chunk) => decoding.push(chunk)), ...decoding.end()];
  return lines
    .filter(({ stream }) => wanted === undefined || stream === wanted)
    .map(({ time, text, start, end }) => {
      const prefix = timestamps && start && time !== "" ? `${shown.get(time)} ` : "";
      return `${prefix}${Buffer.from(text).toString()}${end ? "\n" : ""}`;
    })
    .join("");
}

test("the text of a log consists of its lines' text, for any fragmentation and filter", () => {
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

test("all of a raw line of several MiB is of its stream and its time", () => {
  const bytes = Buffer.from(
    `${times[0]} stderr F ${"x".repeat(3 << 20)}\n${times[2]} stdout F ${"y".repeat(3 << 20)}\n${times[0]} stdout F z\n`,
  );
  const render = (wanted: Partial<TextOptions>): string => {
    const decoding = new TextDecoding({ stream: undefined, timestamps: false, include: undefined, ...wanted });
    let text = "";
    for (let at = 0; at < bytes.length; at += 1 << 18) {
      text += Buffer.from(decoding.push(bytes.subarray(at, at + (1 << 18)))).toString();
    }
    return text.replaceAll(/x{2,}/g, "x").replaceAll(/y{2,}/g, "y");
  };
  assert.equal(render({}), "x\ny\nz\n");
  assert.equal(render({ stream: "stdout" }), "y\nz\n");
  assert.equal(render({ include: (time) => time.startsWith("2026") }), "x\nz\n");
});

test("returned text does not change with further reads", () => {
  const decoding = new TextDecoding({ stream: undefined, timestamps: false, include: undefined });
  const first = decoding.push(Buffer.from(`${times[0]} stdout F one\n`));
  decoding.push(Buffer.from(`${times[0]} stdout F two\n`));
  assert.equal(Buffer.from(first).toString(), "one\n");
});
