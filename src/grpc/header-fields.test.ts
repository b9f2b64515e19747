import { deepEqual, equal, throws } from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { HeaderFields } from "./header-fields.ts";

const NativeHeaders = globalThis.Headers;

type Step =
  | { readonly op: "append" | "set"; readonly name: string; readonly value: string }
  | { readonly op: "delete"; readonly name: string };

function play(headers: Headers, steps: readonly Step[]): unknown {
  const refused: number[] = [];
  for (const [index, step] of steps.entries()) {
    try {
      if (step.op === "delete") headers.delete(step.name);
      else headers[step.op](step.name, step.value);
    } catch (error) {
      equal((error as Error).name, "TypeError");
      refused.push(index);
    }
  }
  const each: unknown[] = [];
  // oxlint-disable-next-line unicorn/no-array-for-each -- its own forEach is what is looked at
  headers.forEach((value, key, parent) => each.push([value, key, parent === headers]));
  return {
    refused,
    each,
    all: [...headers],
    keys: [...headers.keys()],
    values: [...headers.values()],
    cookies: headers.getSetCookie(),
    got: ["a", "A-B", "set-cookie", "x"].map((name) => [headers.has(name), headers.get(name)]),
  };
}

const name = fc.oneof(
  fc.constantFrom("a", "A", "a-b", "A-B", "Set-Cookie", "x-bin", "grpc-status", "", "b c", "ü", "a:"),
  fc.string({ maxLength: 3 }),
);
const value = fc.oneof(
  fc.constantFrom("1", " 1\t", "a, b", "", "ü", "€", "a\nb", "a\0", "\r\n x \r\n", "\u00a0x"),
  fc.string({ maxLength: 4 }),
);
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ op: fc.constantFrom("append" as const, "set" as const), name, value }),
  fc.record({ op: fc.constant("delete" as const), name }),
);

test("header fields behave like the Headers of Node.js", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 8 }), (steps) => {
      deepEqual(play(new HeaderFields(), steps), play(new NativeHeaders(), steps));
    }),
    { numRuns: 2000 },
  );
});

test("header fields take initial values", () => {
  const pairs: [string, string][] = [
    ["B", "2"],
    ["a", "1"],
    ["b", "3"],
  ];
  for (const init of [undefined, {}, { B: "2", a: "1" }, pairs, new NativeHeaders(pairs), new HeaderFields(pairs)]) {
    deepEqual([...new HeaderFields(init)], [...new NativeHeaders(init)]);
  }
  throws(() => new HeaderFields({ "a b": "1" }), TypeError);
});
