import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { needsRoot } from "../../src/linux/processes/testing.ts";
import { boundPod } from "../support/bound-pod.ts";
import { evictedPod, withDiskNode } from "../support/disk-evictions.ts";
import type { KubeletNode } from "../support/kubelet-node.ts";
import { SmallDisk } from "../support/small-disk.ts";

const program = "/usr/sbin/mkfs.ext4";
const skip = needsRoot() || (existsSync(program) ? false : `${program} is not installed`);

test("on a disk without project quotas volumes are walked, and doctor says why", { skip }, async () => {
  const flags = ["--feature-gates", "LocalStorageCapacityIsolationFSQuotaMonitoring=true"];
  const prepare = ({ podwright }: KubeletNode): SmallDisk => new SmallDisk(podwright.layout.kubeletRoot, 64);
  await withDiskNode({ prepare, flags }, async (cluster) => {
    const command = ["/bin/sh", "-c", "dd if=/dev/zero of=/scratch/file bs=1M count=3; sleep 36000"];
    const container = { command, volumeMounts: [{ name: "scratch", mountPath: "/scratch" }] };
    const volumes = [{ name: "scratch", emptyDir: { sizeLimit: "1Mi" } }];
    cluster.server.admin.create(boundPod("filler", container, { volumes }));
    const { message } = await evictedPod(cluster, "filler");
    assert.equal(message, 'Usage of EmptyDir volume "scratch" exceeds the limit "1Mi". ');
    const { stdout } = await cluster.node.podwright.run(["doctor"]);
    assert.match(
      stdout.replaceAll(/\s+/gu, " "),
      /volume quotas cannot look at the file system: (?:the file system of \S+ does not account for projects|xfs_quota is missing: install xfsprogs); volumes without a quota are measured by walking their trees/u,
    );
  });
});
