import assert from "node:assert/strict";
import { test } from "node:test";
import { startNotes } from "./start-notes.ts";

test("the cluster gets Events about cgroup v1, and about a resolver file that exceeds the limits or is unreadable", async () => {
  const told = async (text: string | undefined, cgroupVersion: 1 | 2 = 2, resolvConf = "/r"): Promise<string[]> => {
    const read = async (): Promise<Uint8Array> => {
      if (text === undefined) throw new Error("/r: there is no such file");
      return Buffer.from(text);
    };
    const notes = await startNotes({ read }, { cgroupVersion, resolvConf, clusterDomain: "cluster.local" });
    return notes.map(({ what, message }) => `${what}: ${message}`);
  };
  const many = `search ${Array.from({ length: 30 }, (_, index) => `d${index}`).join(" ")}\n`;
  assert.deepEqual(await told("nameserver 192.0.2.1\n"), []);
  assert.deepEqual(await told(undefined, 2, ""), []);
  assert.deepEqual(await told(undefined), ["CheckLimitsForResolvConf: /r: there is no such file"]);
  const [v1, limits] = await told(many, 1);
  assert.match(v1 ?? "", /^CgroupV1: cgroup v1 detected/);
  assert.equal(
    limits,
    "CheckLimitsForResolvConf: Resolv.conf file '/r' contains search line consisting of more than 29 domains!",
  );
});
