import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { testDirectory } from "../../src/linux/processes/testing.ts";
import { DEMO_IMAGE } from "../../src/private-runtime/built-in-images.ts";
import { type ClusterNode, withClusterNode } from "../support/cluster-node.ts";
import { deleted } from "../support/csi-claims.ts";
import { recordedFiles, RecordedNode, type VolumeFiles } from "../support/csi-recorded-node.ts";
import { recordedVolumes, ToldCalls } from "../support/csi-recording.ts";
import { until } from "../support/podwright.ts";

const pods = ["h1", "h2", "h3", "h4"] as const;
type Name = (typeof pods)[number];

/** What the recorded node had of each pod alone: here they are on it together. */
function filesOf({ tree, mounts }: VolumeFiles, pod: Name): VolumeFiles {
  const others = pods.filter((name) => name !== pod);
  const marks = others.flatMap((name) => {
    const [handle] = recordedVolumes[name];
    return [createHash("sha256").update(handle).digest("hex"), handle, `<UID-of-${name}>`];
  });
  const isOwn = (line: string): boolean => !marks.some((mark) => line.includes(mark));
  return withoutBlockVolumes({ tree: tree.filter(isOwn), mounts: mounts.filter(isOwn) });
}

/** The recorded node had had a block volume before, whose directories stay. */
function withoutBlockVolumes({ tree, mounts }: VolumeFiles): VolumeFiles {
  return { tree: tree.filter((line) => !/\/csi\/volumeDevices(?:\/|$)/u.test(line)), mounts };
}

/** The faults of the recording, until they are mended. How often a call fails is left out of the comparison. */
function fail({ driver }: RecordedNode): void {
  const always = Number.POSITIVE_INFINITY;
  const volume = (pod: Name): string => recordedVolumes[pod][0];
  driver.fail("NodePublishVolume", "InvalidArgument", { times: 2, volume: volume("h1") });
  driver.fail("NodeStageVolume", "DeadlineExceeded", { times: always, volume: volume("h2") });
  driver.fail("NodeStageVolume", "Internal", { times: always, volume: volume("h3") });
  driver.fail("NodePublishVolume", "Unavailable", { times: always, volume: volume("h4"), afterwards: true });
}

/** The driver has failed a call for the pod's volume so often. */
function hasFailed({ driver }: RecordedNode, pod: Name, times: number): boolean {
  const [handle] = recordedVolumes[pod];
  return driver.calls.filter(({ code, request }) => code !== "OK" && request["volumeId"] === handle).length >= times;
}

test("faults of a driver are followed by the calls and the files of the Go kubelet, also when the pods are deleted meanwhile", async () => {
  const work = async (cluster: ClusterNode): Promise<void> => {
    await cluster.nodeReady();
    using temporary = testDirectory();
    await using node = await RecordedNode.start(cluster, temporary.path);
    fail(node);
    for (const pod of pods) {
      node.makeClaim(pod, `claim-${pod}`);
      const source = { persistentVolumeClaim: { claimName: `claim-${pod}` } };
      node.makePod(pod, source, { volumeMounts: [{ name: "d", mountPath: "/data" }] });
    }
    await cluster.ready("h1");
    await until("the others' calls to fail twice", async () => pods.every((pod) => hasFailed(node, pod, 2)));
    const uncertain = { h2: "csi-tree-h2-stage-uncertain.txt", h4: "csi-tree-h4-publish-uncertain.txt" } as const;
    for (const pod of ["h2", "h4"] as const) {
      const recorded = withoutBlockVolumes(recordedFiles(uncertain[pod]));
      assert.deepEqual(filesOf(node.files, pod), recorded, `the files of pod ${pod}`);
    }

    for (const pod of ["h2", "h3", "h4"]) await deleted(cluster, pod);
    node.driver.fail("NodeUnpublishVolume", "Internal", { times: 2, volume: recordedVolumes.h1[0] });
    await deleted(cluster, "h1");
    const left = withoutBlockVolumes(recordedFiles("csi-tree-after-deletes.txt"));
    await node.filesGo(left);
    assert.deepEqual(node.files, left);
    for (const pod of pods) {
      const [handle] = recordedVolumes[pod];
      assert.deepEqual(node.told.lifeOf(handle), ToldCalls.recorded().lifeOf(handle), `the calls for pod ${pod}`);
    }
    assert.ok(node.driver.volumes.isIdle);
    assert.deepEqual(node.driver.violations, []);
  };
  await withClusterNode(work, DEMO_IMAGE);
});
