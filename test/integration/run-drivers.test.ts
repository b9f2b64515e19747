import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { systemMounts } from "../../src/linux/files/mounts.ts";
import { CsiDriver } from "../support/csi-driver.ts";
import { driverEffects, driverPod } from "../support/csi-driver-pod.ts";
import { freePort } from "../support/free-port.ts";
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
