import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { systemMounts } from "../../src/linux/files/mounts.ts";
import { CsiDriver } from "../support/csi-driver.ts";
import { driverEffects, driverPod } from "../support/csi-driver-pod.ts";
import { freePort } from "../support/free-port.ts";
import { patience } from "../support/patience.ts";
import { type Podwright, until, withPodwright } from "../support/podwright.ts";

const place = "/var/lib/kubelet";
const directories = ["pods", "plugins", "plugins_registry"].map((name) => `${place}/${name}`);
const mounts = (): string => readFileSync("/proc/self/mountinfo", "utf8");

/** A CSIDriver, a volume of it, its claim, and a pod that writes to it. */
const manifest = (driver: string): string => `
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: { name: ${driver} }
spec: { attachRequired: false, fsGroupPolicy: File }
---
apiVersion: v1
kind: PersistentVolume
metadata: { name: disk }
spec:
  accessModes: [ReadWriteOnce]
  capacity: { storage: 1Gi }
  csi: { driver: ${driver}, volumeHandle: one }
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: { name: data }
spec: { accessModes: [ReadWriteOnce], volumeName: disk, resources: { requests: { storage: 1Gi } } }
---
apiVersion: v1
kind: Pod
metadata: { name: web }
spec:
  terminationGracePeriodSeconds: 0
  securityContext: { runAsUser: 1000, fsGroup: 4711 }
  containers:
    - name: app
      image: podwright.local/demo:1
      imagePullPolicy: IfNotPresent
      command: [sh, -c, "echo x >>/data/runs; exec sleep 36000"]
      volumeMounts: [{ name: data, mountPath: /data }]
  volumes: [{ name: data, persistentVolumeClaim: { claimName: data } }]
`;

/** Passes podwright, and a directory for a driver, to the work if nobody has the place; afterwards nothing is there. */
async function atFreePlace(
  context: TestContext,
  work: (podwright: Podwright, directory: string) => Promise<void>,
): Promise<void> {
  if (directories.some((path) => existsSync(path))) {
    context.skip(`${place} has pods or plugins on this machine: it may be a kubelet's`);
    return;
  }
  const directory = mkdtempSync(join(tmpdir(), "podwright-csi-"));
  try {
    await withPodwright(async (podwright) => await work(podwright, directory));
    assert.equal(mounts().includes(`${place}/`), false);
    assert.deepEqual(
      directories.filter((path) => existsSync(path)),
      [],
    );
  } finally {
    rmSync(directory, { recursive: true, force: true });
    // After a failure; else nothing of it is there.
    for (const path of directories) {
      await systemMounts.unmount(path);
      rmSync(path, { recursive: true, force: true });
    }
  }
}

async function written(podwright: Podwright): Promise<string> {
  return await podwright.succeed("exec", "web", "--", "cat", "/data/runs");
}

test("a claim's volume comes from a CSI driver on the machine, which finds a kubelet at its usual place", async (context) => {
  await atFreePlace(context, async (podwright, directory) => {
    await using driver = new CsiDriver({ root: place, directory });
    await driver.start();
    await podwright.succeed("run", "--detach", await podwright.manifest("web.yaml", manifest(driver.name)));
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
      await podwright.manifest("web.yaml", manifest(name)),
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
    const web = manifest(name).replace("terminationGracePeriodSeconds: 0", "terminationGracePeriodSeconds: 4");
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
      await podwright.manifest("web.yaml", manifest(name)),
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

test("a volume that came first is used by a later engine, for a claim that comes with its pod", async (context) => {
  await atFreePlace(context, async (podwright, directory) => {
    await using driver = new CsiDriver({ root: place, directory });
    const documents = manifest(driver.name).split("---\n");
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

async function kubeletConfig(podwright: Podwright): Promise<string> {
  const access = { authorization: { mode: "AlwaysAllow" } };
  const settings = { failCgroupV1: false, failSwapOn: false, healthzPort: 0, port: await freePort(), ...access };
  const kind = { apiVersion: "kubelet.config.k8s.io/v1beta1", kind: "KubeletConfiguration" };
  return await podwright.manifest("kubelet.json", JSON.stringify({ ...kind, ...settings }));
}

async function withinMs<T>(limitMs: number, work: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`not over after ${limitMs} ms`)), limitMs * patience);
  return await Promise.race([work, late.promise]).finally(() => clearTimeout(timer));
}
