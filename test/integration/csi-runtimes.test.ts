import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { testDirectory } from "../../src/linux/processes/testing.ts";
import { DEMO_IMAGE } from "../../src/private-runtime/built-in-images.ts";
import { boundPod } from "../support/bound-pod.ts";
import { type ClusterNode, withClusterNode } from "../support/cluster-node.ts";
import { deleted, makeClaim, makeDriverObject } from "../support/csi-claims.ts";
import { CsiDriver } from "../support/csi-driver.ts";
import { until } from "../support/podwright.ts";
import { foundRuntimes } from "../support/runtimes.ts";

/** How a mount takes part in propagation, by the optional fields of mountinfo. */
const propagations = { none: /^$/u, "from-host": /^master:\d+$/u, both: /^shared:\d+(?: master:\d+)?$/u };

function propagationOf(mountInfo: string, path: string): string | undefined {
  const fields = mountInfo.split("\n").map((line) => line.split(" "));
  const mount = fields.find((each) => each[4] === path);
  return mount?.slice(6, mount.indexOf("-")).join(" ");
}

// The other tests of drivers run on the newest one.
for (const runtime of foundRuntimes().slice(0, -1)) {
  test(`on containerd ${runtime.version} (${runtime.name}) a driver's volume is mounted with its propagation, and released`, async () => {
    const work = async (cluster: ClusterNode): Promise<void> => {
      await cluster.nodeReady();
      const { podwright } = cluster.node;
      assert.equal(podwright.runtime.version, runtime.version);
      using temporary = testDirectory();
      await using driver = new CsiDriver({ root: podwright.layout.kubeletRoot, directory: temporary.path });
      makeDriverObject(cluster, driver.name);
      await driver.start();
      makeClaim(cluster, "c", driver.name);
      const volumeMounts = [
        { name: "d", mountPath: "/none" },
        { name: "d", mountPath: "/from-host", mountPropagation: "HostToContainer" },
        { name: "d", mountPath: "/both", mountPropagation: "Bidirectional", subPath: "below" },
      ];
      const command = ["sh", "-c", "echo written >/none/file && exec sleep 36000"];
      const container = { image: DEMO_IMAGE, command, volumeMounts, securityContext: { privileged: true } };
      const volumes = [{ name: "d", persistentVolumeClaim: { claimName: "c" } }];
      cluster.server.admin.create(boundPod("a", container, { volumes, securityContext: { fsGroup: 2000 } }));
      await cluster.ready("a");
      const pid = await podwright.firstProcess((await podwright.container("a", "c")).id);
      const mountInfo = readFileSync(`/proc/${pid}/mountinfo`, "utf8");
      for (const [name, expected] of Object.entries(propagations)) {
        assert.match(propagationOf(mountInfo, `/${name}`) ?? "not mounted", expected, name);
      }
      const written = join(driver.volumes.content("handle-c"), "file");
      await until("the container to write", async () => readFileSync(written, "utf8") === "written\n");
      await deleted(cluster, "a");
      await until("the volume to be unstaged", async () => driver.volumes.isIdle);
      const calls = ["NodeStageVolume", "NodePublishVolume", "NodeUnpublishVolume", "NodeUnstageVolume"];
      assert.deepEqual(driver.effects, calls);
      assert.deepEqual(driver.violations, []);
    };
    await withClusterNode(work, DEMO_IMAGE, "", [], runtime);
  });
}
