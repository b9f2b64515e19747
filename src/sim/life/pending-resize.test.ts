import assert from "node:assert/strict";
import { test } from "node:test";
import { ClusterScene, clusterPod } from "../../../test/support/sim-cluster-scene.ts";
import type { Pod } from "../../api/pod.ts";
import { fieldsAt, listAt, type Fields } from "../api-server/values.ts";

function requesting(name: string, cpu: string): Pod {
  const { metadata, spec } = clusterPod(name);
  const containers = spec.containers.map((each) => ({ ...each, resources: { requests: { cpu } } }));
  return { metadata, spec: { ...spec, containers } };
}

test("a pending resize stays pending at the server over a restart, and its Event is not repeated", async () => {
  const scene = new ClusterScene(() => [], { cpu: "1" });
  const { cluster, node } = scene;
  for (const name of ["web", "other"]) cluster.want(requesting(name, "400m"));
  node.start();
  await scene.pass(60_000);
  cluster.change(requesting("web", "700m"));
  await scene.pass(60_000);
  const pending = (): Fields | undefined => {
    const status = fieldsAt(cluster.pod("uid-web")?.value ?? {}, "status");
    return listAt(status, "conditions").find(({ type }) => type === "PodResizePending");
  };
  const before = pending();
  assert.equal(before?.["reason"], "Deferred");
  const events = scene.events("uid-web").filter((event) => event.includes("ResizeDeferred"));
  assert.equal(events.length, 1);
  node.kill();
  await scene.pass(5000);
  const shown = new Set<string>();
  using _watch = cluster.server.registry.store.onChange(() => shown.add(JSON.stringify(pending())));
  node.start();
  await scene.pass(60_000);
  assert.deepEqual([...shown], [JSON.stringify(before)]);
  assert.deepEqual(
    scene.events("uid-web").filter((event) => event.includes("ResizeDeferred")),
    events,
  );
});
