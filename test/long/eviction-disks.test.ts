import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { needsRoot } from "../../src/linux/processes/testing.ts";
import { boundPod } from "../support/bound-pod.ts";
import { diskIsFree, evictedPod, withDiskNode } from "../support/disk-evictions.ts";
import type { KubeletNode } from "../support/kubelet-node.ts";
import { SmallDisk } from "../support/small-disk.ts";

const program = "/usr/sbin/mkfs.xfs";
const skip = needsRoot() || (existsSync(program) ? false : `${program} is not installed`);
const scratch = { volumeMounts: [{ name: "scratch", mountPath: "/scratch" }] };
const withScratch = { volumes: [{ name: "scratch", emptyDir: {} }] };
const writes = (path: string, mebibytes: number): { readonly command: string[] } => ({
  command: ["/bin/sh", "-c", `head -c ${mebibytes}m /dev/zero > ${path}; sleep 36000`],
});

test("on xfs, pods that fill the node's disk or the disk for images are evicted", { skip }, async () => {
  const limits = ["--eviction-hard", "nodefs.available<120Mi,imagefs.available<120Mi"];
  const prepare = ({ podwright: { layout } }: KubeletNode): Disposable => {
    const disks = new DisposableStack();
    // mkfs.xfs makes none below 300 MiB.
    for (const path of [layout.kubeletRoot, layout.containerd.root]) disks.use(new SmallDisk(path, 320, "xfs"));
    return disks;
  };
  await withDiskNode({ prepare, flags: limits }, async (cluster) => {
    const { admin } = cluster.server;
    admin.create(boundPod("modest", { ...writes("/scratch/a", 10), ...scratch }, withScratch));
    await cluster.ready("modest");
    admin.create(boundPod("volume", { ...writes("/scratch/a", 150), ...scratch }, withScratch));
    const ofNode = (await evictedPod(cluster, "volume")).message ?? "";
    assert.match(ofNode, /^The node was low on resource: ephemeral-storage\. Threshold quantity: 120Mi, available: /u);
    admin.delete("pods", "default/volume");
    await cluster.gone("volume");
    await diskIsFree(cluster);

    admin.create(boundPod("layer", writes("/a", 150)));
    const ofImages = (await evictedPod(cluster, "layer")).message ?? "";
    assert.match(
      ofImages,
      /Container c was using 15\d+Ki, request is 0, has larger consumption of ephemeral-storage\. $/u,
    );
    const why = (await cluster.node.podwright.succeed("why", "layer")).replaceAll(/\s+/gu, " ");
    assert.match(why, /evicted for (?:image|container)fs\.available, ranked 1 of 2/u);
    assert.equal(cluster.status("modest").phase, "Running");
  });
});
