import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { CsiDriver } from "../support/csi-driver.ts";
import { driverEffects, driverPod } from "../support/csi-driver-pod.ts";
import { freePort } from "../support/free-port.ts";
import { patience } from "../support/patience.ts";
import { atFreePlace, driverClaim, kubeletConfig, mounts, place, written } from "../support/kubelet-place.ts";
import { until } from "../support/podwright.ts";

test("a claim's volume comes from a CSI driver on the machine, which finds a kubelet at its usual place", async (context) => {
  await atFreePlace(context, async (podwright, directory) => {
    await using driver = new CsiDriver({ root: place, directory });
    await driver.start();
    await podwright.succeed("run", "--detach", await podwright.manifest("web.yaml", driverClaim(driver.name)));
    assert.deepEqual(driver.effects, ["NodeStageVolume", "NodePublishVolume"]);
    const target = String(driver.callsOf("NodePublishVolume")[0]?.request["targetPath"]);
    assert.match(target, new RegExp(`^${place}/pods/[^/]+/volumes/kubernetes.io~csi/disk/mount$`, "u"));
    await until("what the pod writes", async () => (await written(podwright)) === "x\n");
    assert.match(await podwright.succeed("volumes"), /volume one of driver/u);
    const { stdout } = await podwright.run(["doctor"]);
    assert.match(
      stdout.replaceAll(/\s+/gu, " "),
      /driver test\.csi\.example\.org registered, 1 volumes of pods, 1 staged/u,
    );
    await podwright.succeed("stop", "web");
    assert.deepEqual(driver.effects.slice(-2), ["NodeUnpublishVolume", "NodeUnstageVolume"]);
    assert.deepEqual(driver.violations, []);
    await podwright.succeed("volumes", "rm", "--force", "data");
  });
});

test("a driver that is a pod of the same run serves the others, also after an engine that was killed", async (context) => {
  await atFreePlace(context, async (podwright, directory) => {
    const ports = { driver: await freePort(), registrar: await freePort() };
    const name = "pod.csi.example.org";
    const options = { driver: name, root: place, data: join(directory, "data"), ports };
    const pod = driverPod("driver", options);
    const files = [
      await podwright.manifest("web.yaml", driverClaim(name)),
      await podwright.manifest("driver.json", JSON.stringify(pod)),
    ];
    await podwright.succeed("run", "--detach", ...files);
    await until("what the pod writes", async () => (await written(podwright)) === "x\n");
    assert.equal(readFileSync(join(options.data, "one", "runs"), "utf8"), "x\n");
    assert.deepEqual(driverEffects(options), ["NodeStageVolume", "NodePublishVolume"]);

    // The next engine finds the place as the one before has left it.
    await podwright.kill(await podwright.enginePid());
    await podwright.succeed("run", "--detach", ...files);
    await until("the volume to be confirmed", async () => driverEffects(options).length === 4);
    assert.equal(await written(podwright), "x\n");
    await podwright.succeed("stop", "web");
    const ended = ["NodeUnpublishVolume", "NodeUnstageVolume"];
    await until("the volume to be unstaged", async () => driverEffects(options).length === 6);
    assert.deepEqual(driverEffects(options).slice(-2), ended);
    await podwright.succeed("volumes", "rm", "--force", "data");
    await podwright.succeed("stop", "driver");
  });
});

test("a driver that is stopped with the pods that use it is stopped last, and alone not without a warning", async (context) => {
  await atFreePlace(context, async (podwright, directory) => {
    const ports = { driver: await freePort(), registrar: await freePort() };
    const name = "pod.csi.example.org";
    const options = { driver: name, root: place, data: join(directory, "data"), ports };
    const driver = await podwright.manifest("driver.json", JSON.stringify(driverPod("driver", options)));
    // It ignores SIGTERM: the driver would end before it.
    const web = driverClaim(name).replace("terminationGracePeriodSeconds: 0", "terminationGracePeriodSeconds: 4");
    const files = [await podwright.manifest("web.yaml", web), driver];
    /** Also once the place is free again. */
    const released = (): number => {
      const effects = driverEffects({ driver: name, root: podwright.layout.kubeletRoot });
      return effects.filter((effect) => effect === "NodeUnstageVolume").length;
    };
    await podwright.succeed("run", "--detach", ...files);
    const alone = await podwright.run(["stop", "driver"]);
    assert.match(alone.stderr, /driver serves CSI volumes of web, whose end will wait until a driver runs again/u);
    assert.equal(released(), 0);
    await podwright.succeed("run", "--detach", driver);
    await withinMs(40_000, podwright.succeed("stop", "driver", "web"));
    assert.equal(released(), 1);
    const told = (await podwright.journalOnDisk()).filter(({ what }) => what === "DriverWaits");
    assert.equal(told[0]?.message, "the driver is stopped after its users: pod default/web");

    const run = podwright.start(["run", ...files]);
    await until("what the pod writes", async () => (await written(podwright)) === "x\nx\n");
    run.child.kill("SIGINT");
    assert.equal((await withinMs(40_000, run.ended)).exitCode, 0);
    assert.equal(released(), 2);

    await podwright.succeed("run", "--detach", ...files);
    await podwright.succeed("stop", "driver");
    const stop = podwright.start(["stop", "web"]);
    const held = `volume disk \\(${name}\\) cannot be unpublished: driver name ${name} not found`;
    await until("the stop to say what it waits for", async () =>
      new RegExp(`stopping web: ${held}`, "u").test(stop.stdout),
    );
    assert.match(await podwright.succeed("why", "web"), new RegExp(`^Terminating: it has stopped: ${held}`, "u"));
    await podwright.succeed("run", "--detach", driver);
    assert.equal((await withinMs(40_000, stop.ended)).exitCode, 0);
    await podwright.succeed("stop", "driver");
    assert.equal(released(), 3);
    await podwright.succeed("volumes", "rm", "--force", "data");
  });
});

test("a kubelet that starts while run has its place gets it, and one of podwright is refused", async (context) => {
  await atFreePlace(context, async (podwright, directory) => {
    const ports = { driver: await freePort(), registrar: await freePort() };
    const name = "pod.csi.example.org";
    const options = { driver: name, root: place, data: join(directory, "data"), ports };
    const files = [
      await podwright.manifest("web.yaml", driverClaim(name)),
      await podwright.manifest("driver.json", JSON.stringify(driverPod("driver", options))),
    ];
    await podwright.succeed("run", "--detach", ...files);
    await until("what the pod writes", async () => (await written(podwright)) === "x\n");
    const shown = (): boolean => mounts().includes(` ${place}/pods `);
    assert.ok(shown());

    const config = await kubeletConfig(podwright);
    const own = await podwright.run(["kubelet", "--config", config, "--state-dir", join(directory, "state")]);
    assert.notEqual(own.exitCode, 0);
    const pid = await podwright.enginePid();
    assert.match(own.stderr, new RegExp(`${place} belongs to another node agent \\(pid ${pid}: .*engine`, "u"));
    assert.match(own.stderr, /podwright stop/u);

    const kubelet = spawn("sleep", ["600"], { argv0: "/usr/bin/kubelet", stdio: "ignore" });
    const file = join(place, "cpu_manager_state");
    try {
      writeFileSync(file, "");
      await until("the place to be left", async () => !shown());
      assert.deepEqual(readdirSync(`${place}/pods`), []);
      assert.equal(await written(podwright), "x\n");
      const { stdout } = await podwright.run(["doctor"]);
      assert.match(stdout, new RegExp(`another node agent has started at ${place} \\(pid ${kubelet.pid}`, "u"));
      const again = await podwright.run(["run", "--detach", ...files]);
      assert.match(again.stderr, /belongs to another node agent/u);
      // The driver still sees the volumes where it mounted them.
      await podwright.succeed("stop", "web");
      assert.deepEqual(driverEffects({ ...options, root: podwright.layout.kubeletRoot }).slice(-2), [
        "NodeUnpublishVolume",
        "NodeUnstageVolume",
      ]);
    } finally {
      kubelet.kill("SIGKILL");
      rmSync(file, { force: true });
    }
    await until("the place to be taken again", async () => shown(), 60_000);
    await podwright.succeed("volumes", "rm", "--force", "data");
    await podwright.succeed("stop", "driver");
  });
});

async function withinMs<T>(limitMs: number, work: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`not over after ${limitMs} ms`)), limitMs * patience);
  return await Promise.race([work, late.promise]).finally(() => clearTimeout(timer));
}
