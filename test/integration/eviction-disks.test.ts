import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { describe, test } from "node:test";
import { needsRoot } from "../../src/linux/processes/testing.ts";
import { boundPod } from "../support/bound-pod.ts";
import { diskIsFree, evictedPod, withDiskNode } from "../support/disk-evictions.ts";
import type { KubeletNode } from "../support/kubelet-node.ts";
import { SmallDisk } from "../support/small-disk.ts";

const program = "/usr/sbin/mkfs.ext4";
const skip = needsRoot() || (existsSync(program) ? false : `${program} is not installed`);
const scratch = { volumeMounts: [{ name: "scratch", mountPath: "/scratch" }] };
const withScratch = { volumes: [{ name: "scratch", emptyDir: {} }] };
const script = (text: string): { readonly command: string[] } => ({
  command: ["/bin/sh", "-c", `${text}; sleep 36000`],
});
const files = (count: number, directory: string): string => `for i in $(seq ${count}); do : > ${directory}/$i; done`;

describe("evictions on small disks", { skip }, () => {
  test("of two pods the one with more files is evicted when the node's disk has few inodes left", async () => {
    const limits = ["--eviction-hard", "nodefs.inodesFree<40%"];
    const prepare = ({ podwright }: KubeletNode): SmallDisk =>
      new SmallDisk(podwright.layout.kubeletRoot, 64, "-N", "2048");
    await withDiskNode({ prepare, flags: limits }, async (cluster) => {
      const { admin } = cluster.server;
      admin.create(boundPod("modest", { ...script(files(100, "/scratch")), ...scratch }, withScratch));
      await cluster.ready("modest");
      admin.create(boundPod("filler", { ...script(files(1500, "/scratch")), ...scratch }, withScratch));
      const { message = "" } = await evictedPod(cluster, "filler");
      assert.match(message, /^The node was low on resource: inodes\. Threshold quantity: 8\d\d, available: \d+\. $/u);
      await diskIsFree(cluster);
      assert.equal(cluster.status("modest").phase, "Running");
      const why = (await cluster.node.podwright.succeed("why", "filler")).replaceAll(/\s+/gu, " ");
      assert.match(why, /evicted for nodefs\.inodesFree, ranked 1 of 2: uses 1\S* inodes/u);
    });
  });
});
