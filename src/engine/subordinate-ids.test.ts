import assert from "node:assert/strict";
import { test } from "node:test";
import type { CommandResult, Processes } from "../ports/processes.ts";
import { subordinateIds } from "./subordinate-ids.ts";

const unit = 65_536;
/** All but what the first pod would get from zero on. */
const everything = { first: unit, length: 2 ** 32 - unit, perPod: unit };

/** A machine on which these command lines print that; any other program is missing. */
function printing(outputs: Readonly<Record<string, string | number>>): Pick<Processes, "run"> {
  return {
    run: async (program, words): Promise<CommandResult> => {
      const output = outputs[[program, ...words].join(" ")];
      if (output === undefined) throw Object.assign(new Error(`spawn ${program} ENOENT`), { code: "ENOENT" });
      return typeof output === "number"
        ? { exitCode: output, signal: undefined, stdout: "", stderr: "it failed" }
        : { exitCode: 0, signal: undefined, stdout: output, stderr: "" };
    },
  };
}
const entry = { "getent passwd kubelet": "kubelet:x:999:999::/:/bin/false\n" };
const given = (users: string | number, groups = users): Pick<Processes, "run"> =>
  printing({ ...entry, "getsubids kubelet": users, "getsubids -g kubelet": groups });

test("without a user kubelet, or without getsubids, pods share all IDs but the node's own", async () => {
  assert.deepEqual(await subordinateIds(printing({}), unit, 110), everything);
  assert.deepEqual(await subordinateIds(printing({ "getent passwd kubelet": 2 }), unit, 110), everything);
  assert.deepEqual(await subordinateIds(printing(entry), unit, 110), everything);
});

test("with more IDs per pod, the first range starts after as many", async () => {
  const ids = await subordinateIds(printing({}), 3 * unit, 110);
  assert.equal(ids.first, 3 * unit);
  assert.equal(ids.length % (3 * unit), 0);
  assert.ok(ids.first + ids.length <= 2 ** 32);
});

test("the subordinate IDs of the user kubelet are used", async () => {
  const ids = await subordinateIds(given(`0: kubelet ${unit} ${110 * unit}\n`), unit, 110);
  assert.deepEqual(ids, { first: unit, length: 110 * unit, perPod: unit });
});

test("invalid subordinate IDs are rejected with the reason", async () => {
  for (const [machine, reason] of [
    [given(`0: kubelet 0 ${110 * unit}\n`), /assigned ID 0 must be greater or equal to 65536/],
    [given(`0: kubelet 100000 ${110 * unit}\n`), /assigned ID 100000 is not a multiple of 65536/],
    [given(`0: kubelet ${unit} 100000\n`), /length 100000 is not a multiple of 65536/],
    [given(`0: kubelet ${unit} ${109 * unit}\n`), /not enough to support 110 pods/],
    [given("0: kubelet 65536 65536\n1: kubelet 131072 65536\n"), /must contain only one line/],
    [given(""), /must contain only one line/],
    [given("0: kubelet 65536 65536\n", "0: kubelet 131072 65536\n"), /mismatched subuids and subgids/],
    [given(1), /error retrieving additional uids for user "kubelet": it failed/],
    [given("0: kubelet 65536 65536\n", 1), /error retrieving additional gids/],
    [printing({ "getent passwd kubelet": 3 }), /cannot look up/],
  ] as const) {
    await assert.rejects(subordinateIds(machine, unit, 110), { name: "PodwrightError", exitCode: 3, message: reason });
  }
});
