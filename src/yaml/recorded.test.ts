import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { parseDocuments } from "./documents.ts";

const fixture = new URL("../../test/fixtures/yaml/documents.jsonl", import.meta.url);

test("small documents are read as by Kubernetes' own parser, or rejected alike", (context) => {
  const lines = readFileSync(process.env.PODWRIGHT_YAML ?? fixture, "utf8")
    .trimEnd()
    .split("\n");
  const differing: string[] = [];
  let refused = 0;
  for (const line of lines) {
    const [text, recorded] = JSON.parse(line) as [string, 0 | [unknown]];
    if (recorded === 0) refused++;
    const { documents, errors } = parseDocuments(text, "f");
    const [found, right] = [errors.length === 0 ? [documents[0]?.value ?? null] : 0, recorded].map(plain);
    if (found !== right) differing.push(`${JSON.stringify(text)}: ${right}, here ${found} ${errors.join()}`);
  }
  assert.deepEqual(differing, []);
  assert.ok(refused > 0 && refused < lines.length);
  context.diagnostic(`${lines.length} documents, ${refused} of them refused, all equal`);
});

/** With map fields sorted, and numbers in one notation. */
function plain(value: unknown): string {
  return JSON.stringify(value, (_key, each: unknown) => {
    if (typeof each === "number" || typeof each === "bigint") return `${Number(each) || 0} as a number`;
    if (typeof each !== "object" || each === null || Array.isArray(each)) return each;
    return Object.fromEntries(Object.entries(each).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  });
}
