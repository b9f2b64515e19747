import assert from "node:assert/strict";
import { appendFile, readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { testDirectory } from "../../src/linux/processes/testing.ts";
import type { PodView } from "../../src/server/local-api.ts";
import { type KubeletNode, withKubeletNode } from "../support/kubelet-node.ts";
import { podObject, politeSleep } from "../support/manifests.ts";
import { until } from "../support/podwright.ts";
import { needsBus, SystemBus } from "../support/system-bus.ts";

interface Spec {
  readonly spec: { readonly containers: readonly object[] };
}

/** A pod with a priority; with a hook that hangs longer than anybody waits. */
async function writePod(node: KubeletNode, name: string, priority: number, hangs = false): Promise<void> {
  const pod = podObject(name, politeSleep, { grace: 60 }) as Spec;
  const lifecycle = { preStop: { exec: { command: ["/bin/sleep", "600"] } } };
  const containers = pod.spec.containers.map((container) => ({ ...container, ...(hangs && { lifecycle }) }));
  await node.write(`${name}.yaml`, JSON.stringify({ ...pod, spec: { ...pod.spec, priority, containers } }));
}

const names = ["low", "middle", "high"] as const;

test(
  "a shutdown ends pods by priority, limits a hanging hook, and restarts static pods afterwards",
  { skip: needsBus() },
  async () => {
    using directory = testDirectory();
    await using bus = await SystemBus.start(directory.path);
    await withKubeletNode(async (node) => {
      const { podwright } = node;
      const periods = names.map((_, index) => `{ priority: ${index * 100}, shutdownGracePeriodSeconds: 6 }`);
      const configuration = join(podwright.layout.stateDirectory, "kubelet.yaml");
      await appendFile(configuration, `shutdownGracePeriodByPodPriority: [${periods.join(", ")}]\n`);
      await node.startContainerd();
      await writePod(node, "low", 0);
      await writePod(node, "middle", 100, true);
      await writePod(node, "high", 1000);
      process.env["DBUS_SYSTEM_BUS_ADDRESS"] = bus.address;
      const kubelet = node.startKubelet();
      delete process.env["DBUS_SYSTEM_BUS_ADDRESS"];
      const run = async (): Promise<unknown> =>
        await podwright.waitFor("the pods to run", (pods) =>
          names.every((name) => pods.some((pod) => pod.name === `${name}-node1` && pod.ready)),
        );
      await run();
      assert.equal(bus.locks, 1);
      assert.deepEqual(bus.inhibitors, [
        ["shutdown", "kubelet", "Kubelet needs time to handle node shutdown", "delay"],
      ]);

      bus.announce(true);
      await until("the lock to be released", async () => bus.locks === 0, 30_000);
      const inOrder = (pods: readonly PodView[]): string[] =>
        names.flatMap((name) => {
          const pod = pods.find((each) => each.name === `${name}-node1`);
          return (pod?.containers ?? []).map(({ state }) => `${name} ${state}`);
        });
      const [low, , high] = inOrder(await podwright.pods());
      assert.deepEqual([low, high], ["low terminated", "high terminated"]);
      // It exceeded its group's time, so it was not waited for.
      await podwright.waitFor("the overdue pod to end", (pods) => inOrder(pods)[1] === "middle terminated", 10_000);
      const groups = [
        ...kubelet.stderr.matchAll(/all pods of the shutdown group have ended|shutdown group timed out/gu),
      ];
      assert.equal(groups.length, 3, kubelet.stderr);
      const state = await readFile(join(podwright.layout.kubeletRoot, "graceful_node_shutdown_state"), "utf8");
      assert.match(
        state,
        /^\{"startTime":"2\d{3}-.*","endTime":"2\d{3}-.*","boot":".+","group":\{"priority":200,.*\}\}$/u,
      );

      bus.announce(false);
      await run();
      await until("another lock", async () => bus.locks === 1, 10_000);
      kubelet.child.kill("SIGTERM");
      assert.equal((await kubelet.ended).exitCode, 0);
      assert.equal(bus.locks, 0);
    });
  },
);

test("without a system bus one line reports it, and pods run", async () => {
  await withKubeletNode(async (node) => {
    const { podwright } = node;
    const configuration = join(podwright.layout.stateDirectory, "kubelet.yaml");
    await appendFile(configuration, "shutdownGracePeriod: 10s\n");
    await node.startContainerd();
    await writePod(node, "low", 0);
    process.env["DBUS_SYSTEM_BUS_ADDRESS"] = "unix:path=/nowhere/bus";
    const kubelet = node.startKubelet();
    delete process.env["DBUS_SYSTEM_BUS_ADDRESS"];
    await podwright.waitFor("the pod to run", (pods) => pods.some(({ ready }) => ready));
    const lines = kubelet.stderr.split("\n").filter((line) => line.includes("cannot watch for node shutdowns"));
    assert.equal(lines.length, 1, kubelet.stderr);
    assert.match(lines[0] ?? "", /no server at \/nowhere\/bus/u);
    kubelet.child.kill("SIGTERM");
    assert.equal((await kubelet.ended).exitCode, 0);
  });
});
