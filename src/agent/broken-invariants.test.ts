import assert from "node:assert/strict";
import { test } from "node:test";
import { silentLog } from "../../test/support/sources.ts";
import { invariant, onBrokenInvariant } from "../base/invariant.ts";
import type { JournalInput } from "../journal/entry.ts";
import { tellBrokenInvariants } from "./broken-invariants.ts";

test("a node reports each broken invariant once, and continues", () => {
  const told: JournalInput[] = [];
  using _told = onBrokenInvariant(tellBrokenInvariants({ record: (input) => told.push(input) }, silentLog));
  for (const name of ["a is b", "a is b", "b is c"]) invariant(name, false, () => "it is not");
  assert.deepEqual(
    told.map(({ what, message }) => [what, message]),
    [
      ["InvariantBroken", "broken invariant: a is b: it is not"],
      ["InvariantBroken", "broken invariant: b is c: it is not"],
    ],
  );
});
