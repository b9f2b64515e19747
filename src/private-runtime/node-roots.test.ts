import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { silentLog } from "../../test/support/sources.ts";
import { MemoryFiles } from "../sim/files.ts";
import { simHashing } from "../sim/hashing.ts";
import { podsOfOthers, registerRoot, rootRegistration, unregisterRoot } from "./node-roots.ts";

test("a pod belongs to another node of the machine that has a directory for it", async () => {
  const files = new MemoryFiles(new ManualClock());
  const deps = { files, hashing: simHashing, log: silentLog };
  const roots = ["/srv/a/kubelet", "/srv/b/kubelet", "/srv/own", "/var/lib/podwright/kubelet", "/srv/old/kubelet"];
  for (const [index, root] of roots.entries()) await files.makeDirectory(`${root}/pods/uid-${index}`, 0o750);
  for (const root of roots.slice(0, 3)) await registerRoot(deps, root);
  await files.makeDirectory("/run/podwright/subnets", 0o755);
  await files.write("/run/podwright/subnets/1234", "10.88.1.0/24 /srv/old\n", 0o644);
  const others = await podsOfOthers(files, "/srv/own");
  const theirs = await Promise.all([0, 1, 2, 3, 4, 5].map((index) => others.has(`uid-${index}`)));
  assert.deepEqual(theirs, [true, true, false, true, true, false]);
});

test("a node that ends without pods is forgotten at once, one whose root directory is gone at the next start", async () => {
  const files = new MemoryFiles(new ManualClock());
  const deps = { files, hashing: simHashing, log: silentLog };
  const known = async (root: string): Promise<boolean> => {
    return (await files.stat(rootRegistration(simHashing, root))) !== undefined;
  };
  for (const root of ["/srv/ended", "/srv/gone", "/srv/stays"]) {
    await registerRoot(deps, root);
    assert.ok(
      (await files.stat(root)) !== undefined,
      "else another node would take the registration for one left over",
    );
  }
  await unregisterRoot(deps, "/srv/ended");
  await files.removeTree("/srv/gone");
  await registerRoot(deps, "/srv/new");
  assert.deepEqual(await Promise.all(["/srv/ended", "/srv/gone", "/srv/stays", "/srv/new"].map(known)), [
    ...[false, false, true, true],
  ]);
});
