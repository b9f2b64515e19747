import assert from "node:assert/strict";
import { test } from "node:test";
import { podOf, runs, Scene } from "../../../test/support/sim-scene.ts";
import type { Pod } from "../../api/pod.ts";
import { userIdsOf } from "../../runtime/config/namespaces.ts";
import { userNamespaces } from "../rules/user-namespaces.ts";

const withUsers = (uid: string): Pod => podOf({ hostUsers: false, containers: [runs("c")] }, uid, uid);

function idsOf({ world }: Scene, uid: string): unknown {
  return userIdsOf(world.running(uid, "c")?.config.linux?.securityContext?.namespaceOptions);
}

for (const [damage, text] of [
  ["empty", ""],
  ["no JSON", "{"],
] as const) {
  test(`a running pod whose file of user IDs is ${damage} keeps its sandbox and its IDs, and shares them with no other`, async () => {
    const scene = new Scene();
    const { node, world } = scene;
    node.add(withUsers("damaged"));
    await scene.pass(20_000);
    const ids = { first: 65_536, length: 65_536 };
    assert.deepEqual(idsOf(scene, "damaged"), ids);
    const sandboxes = [...world.sandboxes.keys()];
    node.kill();
    await node.files.write(`${node.config.node.rootDirectory}/pods/damaged/userns`, text, 0o600);
    const broken = scene.judge(userNamespaces);
    node.start();
    node.add(withUsers("other"));
    await scene.pass(20_000);
    assert.deepEqual(idsOf(scene, "other"), { first: 131_072, length: 65_536 });
    const container = world.running("damaged", "c");
    assert.ok(container, "it still runs");
    world.exit(container, 1, "Error");
    await scene.pass(60_000);
    assert.equal(world.sandboxes.get(sandboxes[0] ?? "")?.ready, true);
    assert.equal(world.running("damaged", "c"), undefined);
    assert.match(
      scene.status("damaged")?.containerStatuses?.[0]?.state.waiting?.message ?? "",
      /^user namespace: cannot use .*\/userns: /,
    );
    node.remove("damaged");
    await scene.pass(60_000);
    node.add(withUsers("damaged"));
    await scene.pass(20_000);
    assert.deepEqual(idsOf(scene, "damaged"), { first: 196_608, length: 65_536 });
    assert.deepEqual(broken, []);
  });
}
