import assert from "node:assert/strict";
import { test } from "node:test";
import { port, ProbeWorld as World, wallStart } from "../../test/support/probe-world.ts";
import { testContainer, testPod, testSandbox, testStatus } from "../../test/support/observed.ts";

const probe = { livenessProbe: port(1) };

test("the host's address is used for a pod in the host network", async () => {
  const world = new World();
  let asked = "";
  world.network.tcpConnect = (host) => {
    asked = host;
    return Promise.resolve();
  };
  world.see(probe, {}, { spec: { hostNetwork: true } });
  await world.clock.advance(1);
  assert.equal(asked, "192.0.2.1");
});

test("a pod with two addresses is probed at that of the node's family", async () => {
  for (const [hostIPs, expected] of [
    [["192.0.2.1"], "10.0.0.1"],
    [["fd00::1"], "fd00::5"],
  ] as const) {
    const world = new World(undefined, hostIPs);
    let asked = "";
    world.network.tcpConnect = (host) => {
      asked = host;
      return Promise.resolve();
    };
    const pod = testPod({ containers: [{ name: "c", image: "busybox", ...probe }] });
    const running = testContainer({ startedAt: BigInt(wallStart) * 1_000_000n });
    world.manager.observe(pod, testStatus([testSandbox({ ips: ["10.0.0.1", "fd00::5"] })], [running]), false);
    await world.clock.advance(1);
    assert.equal(asked, expected);
  }
});
