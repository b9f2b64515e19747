import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { needsRoot } from "../../src/linux/processes/testing.ts";
import { boundPod } from "../support/bound-pod.ts";
import { diskIsFree, evictedPod, imageNames, pullUnused, withDiskNode } from "../support/disk-evictions.ts";
import type { KubeletNode } from "../support/kubelet-node.ts";
import { until } from "../support/podwright.ts";
import { SmallDisk } from "../support/small-disk.ts";

const program = "/usr/sbin/mkfs.xfs";
const skip = needsRoot() || (existsSync(program) ? false : `${program} is not installed`);
const needs = ["/usr/bin/docker-registry", "/usr/sbin/mkfs.ext4"].find((each) => !existsSync(each));
const skipExt4 = needsRoot() || (needs === undefined ? false : `${needs} is not installed`);
const mi = 1 << 20;
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
      /Container c was using (?:1\d{5}Ki|1\d\dMi), request is 0, has larger consumption of ephemeral-storage\. $/u,
    );
    const why = (await cluster.node.podwright.succeed("why", "layer")).replaceAll(/\s+/gu, " ");
    assert.match(why, /evicted for (?:image|container)fs\.available, ranked 1 of 2/u);
    assert.equal(cluster.status("modest").phase, "Running");
  });
});

const script = (text: string): { readonly command: string[] } => ({
  command: ["/bin/sh", "-c", `${text}; sleep 36000`],
});
const files = (count: number, directory: string): string => `for i in $(seq ${count}); do : > ${directory}/$i; done`;

test(
  "on a disk for images unused ones go first, and then the pod with the largest writable layer",
  { skip: skipExt4 },
  async () => {
    const limits = [
      ...["--eviction-hard", "imagefs.available<130Mi,imagefs.inodesFree<3000"],
      ...["--minimum-image-ttl-duration", "0s"],
    ];
    const prepare = ({ podwright }: KubeletNode): SmallDisk =>
      new SmallDisk(podwright.layout.containerd.root, 256, "-N", "8192");
    await withDiskNode({ prepare, flags: limits }, async (cluster) => {
      const { node, server } = cluster;
      const { admin } = server;
      const why = async (name: string): Promise<string> =>
        (await node.podwright.succeed("why", name)).replaceAll(/\s+/gu, " ");
      const unused = await pullUnused(node, 40 * mi);
      const derived = await node.podwright.succeed("evict", "--preview", "--signal", "containerfs.available");
      assert.match(derived, /^containerfs\.available is .*pods are evicted below 130Mi/u);

      // The volume is on another disk.
      const both = "head -c 30m /dev/zero > /layer; head -c 150m /dev/zero > /scratch/volume";
      admin.create(boundPod("modest", { ...script(both), ...scratch }, withScratch));
      await until("the unused image to be removed", async () => !(await imageNames(node)).includes(unused), 60_000);
      await diskIsFree(cluster);
      await cluster.ready("modest");

      // What it writes is too new for containerd, which measures layers every 10 s.
      admin.create(boundPod("filler", script("head -c 100m /dev/zero > /a")));
      const { message = "" } = await evictedPod(cluster, "filler");
      assert.match(
        message,
        /^The node was low on resource: ephemeral-storage\. Threshold quantity: 130Mi, available: /u,
      );
      assert.match(
        message,
        /Container c was using \d+[KM]i, request is 0, has larger consumption of ephemeral-storage\. $/u,
      );
      assert.match(
        await why("filler"),
        /evicted for (?:image|container)fs\.available, ranked 1 of 2: .*next: default\/modest/u,
      );
      await diskIsFree(cluster);

      admin.create(boundPod("files", script(`mkdir /a; ${files(6000, "/a")}`)));
      assert.match((await evictedPod(cluster, "files")).message ?? "", /^The node was low on resource: inodes\. /u);
      assert.match(await why("files"), /evicted for (?:image|container)fs\.inodesFree, ranked 1 of 2/u);
      assert.equal(cluster.status("modest").phase, "Running");
    });
  },
);
