import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { systemMounts } from "../../src/linux/files/mounts.ts";
import { freePort } from "./free-port.ts";
import { type Podwright, withPodwright } from "./podwright.ts";

/** Where drivers expect a kubelet. */
export const place = "/var/lib/kubelet";
const directories = ["pods", "plugins", "plugins_registry"].map((name) => `${place}/${name}`);
export const mounts = (): string => readFileSync("/proc/self/mountinfo", "utf8");

/** A CSIDriver, a volume of it, its claim, and a pod that writes to it. */
export const driverClaim = (driver: string): string => `
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
export async function atFreePlace(
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

/** What the pod of {@link driverClaim} has written. */
export async function written(podwright: Podwright): Promise<string> {
  return await podwright.succeed("exec", "web", "--", "cat", "/data/runs");
}

/** The path of a configuration for `podwright kubelet`. */
export async function kubeletConfig(podwright: Podwright): Promise<string> {
  const access = { authorization: { mode: "AlwaysAllow" } };
  const settings = { failCgroupV1: false, failSwapOn: false, healthzPort: 0, port: await freePort(), ...access };
  const kind = { apiVersion: "kubelet.config.k8s.io/v1beta1", kind: "KubeletConfiguration" };
  return await podwright.manifest("kubelet.json", JSON.stringify({ ...kind, ...settings }));
}
