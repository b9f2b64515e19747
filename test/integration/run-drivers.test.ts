import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { systemMounts } from "../../src/linux/files/mounts.ts";
import { CsiDriver } from "../support/csi-driver.ts";
import { until, withPodwright } from "../support/podwright.ts";

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

/** What a driver's container mounts below the kubelet's pods has to be seen by that kubelet. */
const driverPod = `
apiVersion: v1
kind: Pod
metadata: { name: driver }
spec:
  terminationGracePeriodSeconds: 0
  containers:
    - name: driver
      image: podwright.local/demo:1
      imagePullPolicy: IfNotPresent
      command: [sleep, "36000"]
      securityContext: { privileged: true }
      volumeMounts: [{ name: pods, mountPath: ${place}/pods, mountPropagation: Bidirectional }]
  volumes: [{ name: pods, hostPath: { path: ${place}/pods, type: DirectoryOrCreate } }]
`;

test("a claim's volume comes from a CSI driver, which finds a kubelet at its usual place; a driver may be a pod", async (context) => {
  if (directories.some((path) => existsSync(path))) {
    context.skip(`${place} has pods or plugins on this machine: it may be a kubelet's`);
    return;
  }
  const directory = mkdtempSync(join(tmpdir(), "podwright-csi-"));
  try {
    await withPodwright(async (podwright) => {
      await using driver = new CsiDriver({ root: place, directory });
      await driver.start();
      await podwright.succeed("run", "--detach", await podwright.manifest("web.yaml", manifest(driver.name)));
      assert.deepEqual(driver.effects, ["NodeStageVolume", "NodePublishVolume"]);
      const target = String(driver.callsOf("NodePublishVolume")[0]?.request["targetPath"]);
      assert.match(target, new RegExp(`^${place}/pods/[^/]+/volumes/kubernetes.io~csi/disk/mount$`, "u"));
      const runs = async (): Promise<boolean> =>
        (await podwright.succeed("exec", "web", "--", "cat", "/data/runs")) === "x\n";
      await until("what the pod writes", runs);
      assert.match(await podwright.succeed("volumes"), /volume one of driver/u);

      // The next engine finds the place as the one before has left it.
      await podwright.kill(await podwright.enginePid());
      await podwright.succeed("run", "--detach", await podwright.manifest("driver.yaml", driverPod));
      await podwright.succeed(
        "exec",
        "driver",
        "--",
        "sh",
        "-c",
        `mkdir ${place}/pods/x; mount -t tmpfs x ${place}/pods/x`,
      );
      const seen = `${podwright.layout.kubeletRoot}/pods/x`;
      await until("the driver's mount", async () => mounts().includes(` ${seen} `));
      await podwright.succeed("exec", "driver", "--", "umount", `${place}/pods/x`);
      assert.equal(mounts().includes(` ${seen} `), false);
      rmSync(seen, { recursive: true });

      await podwright.succeed("stop", "web", "driver");
      assert.deepEqual(driver.effects.slice(-2), ["NodeUnpublishVolume", "NodeUnstageVolume"]);
      assert.deepEqual(driver.violations, []);
      await podwright.succeed("volumes", "rm", "--force", "data");
    });
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
});
