import assert from "node:assert/strict";
import { test } from "node:test";
import { ClusterScene } from "../../test/support/sim-cluster-scene.ts";
import type { Room } from "../kubelet/room.ts";
import { fieldsAt } from "../sim/api-server/values.ts";
import { plainDriver } from "../sim/csi/claimed-volumes.ts";
import { driverRooms } from "../sim/life/driver-rooms.ts";
import { SimRandom } from "../sim/random.ts";

/** Warnings of a node whose driver asks for mounts with SELinux contexts. */
async function warnings(seLinux: boolean): Promise<string[]> {
  const rooms: Room[] = [];
  const scene = new ClusterScene((parts, node) => {
    rooms.push(...driverRooms(node, parts, seLinux));
    return rooms;
  });
  scene.cluster.addStorage(new SimRandom(3), false, false);
  scene.node.drivers.install(new SimRandom(4), true);
  const { store } = scene.cluster.server.registry;
  const object = store.get("csidrivers", `/${plainDriver.name}`);
  assert.ok(object !== undefined);
  const spec = { ...fieldsAt(object.value, "spec"), seLinuxMount: true };
  store.put("csidrivers", object.key, { ...object.value, spec });
  scene.node.start();
  await scene.pass(30_000);
  const findings = rooms.flatMap((room) => room.findings?.() ?? []);
  assert.ok(findings.some(({ detail }) => detail.includes(plainDriver.name)));
  return findings.filter(({ warning }) => warning === true).map(({ detail }) => detail);
}

test("on a node with SELinux, the drivers whose seLinuxMount is not followed are named", async () => {
  assert.deepEqual(await warnings(false), []);
  const [detail = "", ...others] = await warnings(true);
  assert.ok(detail.includes(`in spite of seLinuxMount: ${plainDriver.name};`), detail);
  assert.deepEqual(others, []);
});
