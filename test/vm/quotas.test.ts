import assert from "node:assert/strict";
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { after, test } from "node:test";
import type { PodStatus } from "../../src/api/status.ts";
import { TestApiServer } from "../apiserver/server.ts";
import { boundPod } from "../support/bound-pod.ts";
import { until } from "../support/podwright.ts";
import { KubeletService } from "./kubelet-service.ts";
import { run } from "./machine.ts";

const mi = 2 ** 20;
const kubeconfig = "/etc/kubernetes/kubeconfig";
const [projects, projid] = ["/etc/projects", "/etc/projid"];
/** Another program's project, the first that a kubelet would take. */
const others = "1048577:/srv/backup\n";
const configuration = `featureGates: { LocalStorageCapacityIsolationFSQuotaMonitoring: true }
evictionHard: { memory.available: 1Mi }
volumeStatsAggPeriod: 2s`;
/** It has 2 MiB in a file without a name, and 6 MiB more once it is told. */
const script = `exec 3>/data/hidden; rm /data/hidden; dd if=/dev/zero bs=1M count=2 >&3
while [ ! -e /data/more ]; do sleep 1; done; dd if=/dev/zero bs=1M count=6 >&3; sleep 36000`;

const server = await TestApiServer.start();
mkdirSync("/etc/kubernetes", { recursive: true });
const credentials = server.credentials("system:node:node1", ["system:nodes"]);
writeFileSync(kubeconfig, server.kubeconfig(credentials), { mode: 0o600 });
after(async () => await server[Symbol.asyncDispose]());

/** An image of a file system. mkfs.xfs makes none smaller; the machine's project disk brings one of ext4. */
const images: Readonly<Record<string, (image: string) => void>> = {
  xfs: (image) => {
    writeFileSync(image, "");
    truncateSync(image, 300 * mi);
    run("mkfs.xfs", ["-q", image]);
  },
  ext4: (image) => copyFileSync(join(resolve(import.meta.dirname, "../.."), "projects.ext4"), image),
};

for (const [type, make] of Object.entries(images)) {
  test(`a project quota on ${type} counts a file without a name, over a restart, until its pod is evicted`, async () => {
    const [image, root] = [`/var/tmp/${type}.img`, `/var/lib/kubelet-${type}`];
    make(image);
    mkdirSync(root);
    run("mount", ["-o", "loop,prjquota", image, root]);
    writeFileSync(projects, others);
    writeFileSync(projid, "");
    const state = ["--root-dir", root, "--state-dir", "/var/lib/kubelet/podwright"];
    const node = await KubeletService.start(configuration, ["--kubeconfig", kubeconfig, ...state]);
    try {
      await hiddenFileCounts(node, type, root);
    } catch (error) {
      throw new Error(`${node.log()}\n${readFileSync(projects, "utf8")}`, { cause: error });
    } finally {
      server.admin.delete("pods", `default/${type}`);
      await node[Symbol.asyncDispose]();
      run("umount", ["--recursive", root]);
      rmSync(image);
    }
  });
}

async function hiddenFileCounts(node: KubeletService, name: string, root: string): Promise<void> {
  const { admin } = server;
  const status = (): PodStatus =>
    (admin.get("pods", `default/${name}`) as unknown as { readonly status: PodStatus }).status;
  const container = { command: ["/bin/sh", "-c", script], volumeMounts: [{ name: "data", mountPath: "/data" }] };
  const volumes = [{ name: "data", emptyDir: { sizeLimit: "4Mi" } }];
  const pod = admin.create(boundPod(name, container, { hostUsers: false, volumes })) as {
    readonly metadata: { readonly uid?: string };
  };
  const directory = `${root}/pods/${pod.metadata.uid ?? ""}/volumes/kubernetes.io~empty-dir/data`;
  const usedBytes = async (): Promise<number> => {
    const { pods } = await node.summary();
    const own = pods.find(({ podRef }) => podRef.name === name)?.volume ?? [];
    return own.find((volume) => volume.name === "data")?.usedBytes ?? 0;
  };
  // A walk would find the directory alone.
  const isCounted = async (): Promise<boolean> => (await usedBytes()) >= 2 * mi;
  await until(() => `the file to count: ${JSON.stringify(status())}`, isCounted);
  assert.equal(readFileSync(projects, "utf8"), `${others}1048578:${directory}\n`);
  assert.equal(readFileSync(projid, "utf8"), "volume1048578:1048578\n");
  await node.restart(configuration);
  await until("the file to count after the restart", isCounted);
  assert.equal(status().phase, "Running");
  writeFileSync(join(directory, "more"), "");
  await until("the pod to be evicted", async () => status().phase === "Failed");
  const { reason, message } = status();
  assert.equal(reason, "Evicted");
  assert.equal(message, 'Usage of EmptyDir volume "data" exceeds the limit "4Mi". ');
  await until("its volume to be removed", async () => !existsSync(directory));
  assert.equal(readFileSync(projects, "utf8"), others);
  assert.equal(readFileSync(projid, "utf8"), "");
}
