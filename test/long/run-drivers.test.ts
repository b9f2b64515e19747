import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readdirSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { systemClock } from "../../src/linux/processes/clock.ts";
import { CsiDriver } from "../support/csi-driver.ts";
import { driverPod } from "../support/csi-driver-pod.ts";
import { freePort } from "../support/free-port.ts";
import { atFreePlace, driverClaim, kubeletConfig, mounts, place, written } from "../support/kubelet-place.ts";
import { until } from "../support/podwright.ts";

test("a volume that came first is used by a later engine, for a claim that comes with its pod", async (context) => {
  await atFreePlace(context, async (podwright, directory) => {
    await using driver = new CsiDriver({ root: place, directory });
    const documents = driverClaim(driver.name).split("---\n");
    const before = await podwright.manifest("volume.yaml", documents.slice(0, 2).join("---\n"));
    await podwright.succeed("run", "--detach", before);
    await until("the engine without pods to end", async () => !mounts().includes(` ${place}/pods `), 60_000);
    await driver.start();
    await podwright.succeed("run", "--detach", await podwright.manifest("web.yaml", documents.slice(2).join("---\n")));
    await until("what the pod writes", async () => (await written(podwright)) === "x\n");
    await podwright.succeed("stop", "web");
    await podwright.succeed("volumes", "rm", "--force", "data");
  });
});

test("an engine without pods stays until its driver has unstaged their volume", async (context) => {
  await atFreePlace(context, async (podwright, directory) => {
    await using driver = new CsiDriver({ root: place, directory });
    await driver.start();
    await podwright.succeed("run", "--detach", await podwright.manifest("web.yaml", driverClaim(driver.name)));
    await until("what the pod writes", async () => (await written(podwright)) === "x\n");
    using unstaging = driver.hang("NodeUnstageVolume");
    await podwright.succeed("stop", "web");
    const pid = await podwright.enginePid();
    await until("the call", async () => driver.calls.some(({ method }) => method === "NodeUnstageVolume"));
    await systemClock.sleep("the engine to end too early", 5000);
    assert.equal(await podwright.enginePid(), pid);
    assert.ok(mounts().includes(` ${place}/plugins `));
    assert.match((await podwright.run(["doctor"])).stdout, /staged, but used by no pod: /u);
    unstaging[Symbol.dispose]();
    await until("the engine to end", async () => !mounts().includes(` ${place}/plugins `), 60_000);
    assert.ok(driver.volumes.isIdle);
    // The socket of a driver on the machine is not the engine's to remove.
    await driver[Symbol.asyncDispose]();
    rmdirSync(`${place}/plugins_registry`);
    if (readdirSync(place).length === 0) rmdirSync(place);
  });
});

test("what an engine that was killed has left there keeps a kubelet off, and goes with the last pod", async (context) => {
  await atFreePlace(context, async (podwright, directory) => {
    const ports = { driver: await freePort(), registrar: await freePort() };
    const options = { driver: "pod.csi.example.org", root: place, data: join(directory, "data"), ports };
    const plain = await podwright.manifest("plain.yaml", plainPod);
    const driver = await podwright.manifest("driver.json", JSON.stringify(driverPod("driver", options)));
    const kept = (): Promise<string> => podwright.succeed("exec", "plain", "--", "cat", "/data/kept");
    await podwright.succeed("run", "--detach", plain, driver);
    await until("what the pod writes", async () => (await kept()) === "x\n");
    // Before that its registrar would leave its socket.
    const doctor = async (): Promise<string> => (await podwright.run(["doctor"])).stdout.replaceAll(/\s+/gu, " ");
    await until("the driver to register", async () => /pod\.csi\.example\.org registered/u.test(await doctor()));
    await podwright.succeed("stop", "driver");
    await podwright.kill(await podwright.enginePid());
    assert.ok(mounts().includes(` ${place}/pods `));

    const config = await kubeletConfig(podwright);
    const refused = await podwright.run(["kubelet", "--config", config, "--state-dir", join(directory, "state")]);
    assert.equal(refused.exitCode, 3);
    assert.match(refused.stderr, new RegExp(`${place}/pods shows ${podwright.layout.kubeletRoot}/pods`, "u"));
    await podwright.succeed("run", "--detach", plain);
    assert.equal(await kept(), "x\n");

    // A kubelet that starts while no engine runs is noticed by the next one.
    await podwright.kill(await podwright.enginePid());
    const kubelet = spawn("sleep", ["600"], { argv0: "/usr/bin/kubelet", stdio: "ignore" });
    try {
      await podwright.succeed("run", "--detach", plain);
      await until("the place to be left", async () => !mounts().includes(` ${place}/pods `));
      const { stdout } = await podwright.run(["doctor"]);
      assert.match(stdout, new RegExp(`another node agent has started at ${place} \\(pid ${kubelet.pid}`, "u"));
      assert.equal(await kept(), "x\n");
    } finally {
      kubelet.kill("SIGKILL");
    }
    await until("the place to be taken again", async () => mounts().includes(` ${place}/pods `), 60_000);
    await podwright.succeed("stop", "plain");
  });
});

const plainPod = `
apiVersion: v1
kind: Pod
metadata: { name: plain }
spec:
  terminationGracePeriodSeconds: 0
  containers:
    - name: app
      image: podwright.local/demo:1
      imagePullPolicy: IfNotPresent
      command: [sh, -c, "echo x >>/data/kept; exec sleep 36000"]
      volumeMounts: [{ name: data, mountPath: /data }]
  volumes: [{ name: data, emptyDir: {} }]
`;
