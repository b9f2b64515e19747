import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { test } from "node:test";
import { testDirectory } from "../../src/linux/processes/testing.ts";
import { end, goLog, identity, startGoKubelet, watch, withoutTimes } from "../support/changing-over.ts";
import { deployWithClaims } from "../support/claimed-set.ts";
import { noControlPlane, noGoKubelet } from "../support/control-plane.ts";
import { CsiControllers } from "../support/csi-controllers.ts";
import { CsiDriver } from "../support/csi-driver.ts";
import { noKubectl } from "../support/kubectl.ts";
import { image, limitMs, type Member, withMember } from "../support/member.ts";
import { until } from "../support/podwright.ts";

const blockClaim = {
  apiVersion: "v1",
  kind: "PersistentVolumeClaim",
  metadata: { name: "raw" },
  spec: {
    accessModes: ["ReadWriteOnce"],
    volumeMode: "Block",
    storageClassName: "test",
    resources: { requests: { storage: "8Mi" } },
  },
};

const blockPod = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "raw" },
  spec: {
    terminationGracePeriodSeconds: 1,
    containers: [
      {
        name: "c",
        image,
        imagePullPolicy: "Never",
        command: ["sh", "-c", "trap 'exit 0' TERM; echo precious | dd of=/dev/raw conv=sync 2>&1; sleep 3600 & wait"],
        volumeDevices: [{ name: "raw", devicePath: "/dev/raw" }],
      },
    ],
    volumes: [{ name: "raw", persistentVolumeClaim: { claimName: "raw" } }],
  },
};

/** What the pods have of their claims. */
async function contents({ kubectl }: Member): Promise<readonly string[]> {
  return [
    await kubectl.succeed("exec", "db-0", "--", "cat", "/data/names"),
    (await kubectl.succeed("exec", "raw", "--", "head", "-c", "8", "/dev/raw")).trim(),
  ];
}

/** Calls that take something away. */
function removals(driver: CsiDriver): number {
  return driver.callsOf("NodeUnpublishVolume").length + driver.callsOf("NodeUnstageVolume").length;
}

/** The next kubelet takes the node over: the containers run on, and their volumes stay as they are. */
async function takesOver(member: Member, driver: CsiDriver, start: () => Promise<void>): Promise<void> {
  const before = (await identity(member)).map(withoutTimes);
  const removed = removals(driver);
  await start();
  await watch(member);
  assert.deepEqual((await identity(member)).map(withoutTimes), before);
  assert.deepEqual(await contents(member), ["db-0\n", "precious"]);
  assert.equal(removals(driver), removed, "nothing is unpublished or unstaged");
  assert.deepEqual(driver.violations, []);
}

/** The pod's volume is taken down by the present kubelet, whichever set it up, and set up for its successor. */
async function replaces(member: Member, driver: CsiDriver): Promise<void> {
  const removed = removals(driver);
  await member.kubectl.succeed("delete", "pod", "db-1");
  await member.rolledOut("statefulset/db");
  assert.ok(removals(driver) > removed);
  assert.deepEqual(driver.violations, []);
}

async function changeOver(member: Member, driver: CsiDriver): Promise<void> {
  const { kubectl } = member;
  const first = member.start();
  await member.shows(/^node1 +Ready/m, "get", "nodes");
  await member.approveServing();
  await driver.start();
  await member.shows(new RegExp(driver.name), "get", "csinode", "node1", "-o", "jsonpath={.spec.drivers[*].name}");
  await using _controllers = new CsiControllers(kubectl, driver.name);
  await deployWithClaims(member, driver.name, 2);
  await member.apply(blockClaim, blockPod);
  await member.shows(/^raw +1\/1 +Running/m, "get", "pods");
  first.child.kill("SIGTERM");
  await first.ended;

  let go = await startGoKubelet(member);
  try {
    await takesOver(member, driver, async () => {});
    await replaces(member, driver);
    await end(go);
    let podwright = member.start();
    await takesOver(member, driver, async () => await member.node.answers());
    await replaces(member, driver);
    podwright.child.kill("SIGTERM");
    await podwright.ended;
    // A restart of the Go kubelet, so that podwright takes over volumes of both.
    go = await startGoKubelet(member);
    await takesOver(member, driver, async () => {});
    await end(go);
    podwright = member.start();
    await takesOver(member, driver, async () => await member.node.answers());
    await kubectl.succeed("delete", "pod", "raw", "--timeout=60s");
    await kubectl.succeed("delete", "statefulset", "db", "--cascade=foreground", "--timeout=60s");
    await until("all volumes to be unstaged", async () => driver.volumes.isIdle, limitMs);
    await member.shows(/No resources found/, "get", "volumeattachments");
    assert.deepEqual(driver.violations, []);
    const plugin = `${member.node.podwright.layout.kubeletRoot}/plugins/kubernetes.io/csi`;
    assert.deepEqual(
      (await readdir(`${plugin}/${driver.name}`)).concat(await readdir(`${plugin}/volumeDevices/staging`)),
      [],
    );
    podwright.child.kill("SIGTERM");
    await podwright.ended;
  } catch (error) {
    console.error(await goLog(member), driver.calls.slice(-10));
    throw error;
  } finally {
    await end(go);
  }
}

// This machine's cgroups have no other limits.
const settings = "evictionHard: { memory.available: 1Mi }\nserverTLSBootstrap: true\n";
const title =
  "a node with claims mounted changes over from podwright to the Go kubelet, back, and again, and they stay mounted";
test(title, { skip: noControlPlane || noGoKubelet || noKubectl }, async () => {
  await withMember(settings, async (member) => {
    using directory = testDirectory();
    await using driver = new CsiDriver({ root: member.node.podwright.layout.kubeletRoot, directory: directory.path });
    await changeOver(member, driver);
  });
});
