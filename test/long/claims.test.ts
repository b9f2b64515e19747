import assert from "node:assert/strict";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { testDirectory } from "../../src/linux/processes/testing.ts";
import { noControlPlane } from "../support/control-plane.ts";
import { CsiControllers } from "../support/csi-controllers.ts";
import { CsiDriver } from "../support/csi-driver.ts";
import { noKubectl } from "../support/kubectl.ts";
import { deployWithClaims } from "../support/claimed-set.ts";
import { limitMs, type Member, withMember } from "../support/member.ts";
import { until } from "../support/podwright.ts";

/** When the Node last stopped listing volumes in use, in ms of performance.now(). */
function watchUse({ kubectl }: Member): { emptied(): number | undefined; stop(): void } {
  const watch = kubectl.start("get", "node", "node1", "--watch", "--output=jsonpath={.status.volumesInUse}{'\\n'}");
  let emptiedAtMs: number | undefined;
  let inUse = false;
  assert.ok(watch.stdout !== null);
  createInterface(watch.stdout).on("line", (line) => {
    const isUsed = line !== "" && line !== "[]";
    if (inUse && !isUsed) emptiedAtMs = performance.now();
    inUse = isUsed;
  });
  return { emptied: () => emptiedAtMs, stop: () => void watch.kill("SIGTERM") };
}

/** How long pods took from their first sight until they were Ready, in ms. */
function watchStarts({ kubectl }: Member): { readonly times: readonly number[]; stop(): void } {
  const shown = "jsonpath={.metadata.uid} {.status.conditions[?(@.type=='Ready')].status}{'\\n'}";
  const watch = kubectl.start("get", "pods", "--selector=app=db", "--watch", `--output=${shown}`);
  const since = new Map<string, number>();
  const times: number[] = [];
  assert.ok(watch.stdout !== null);
  createInterface(watch.stdout).on("line", (line) => {
    const [uid = "", ready = ""] = line.split(" ");
    const createdMs = since.get(uid);
    if (createdMs === undefined) since.set(uid, performance.now());
    else if (ready === "True" && !Number.isNaN(createdMs)) {
      times.push(Math.round(performance.now() - createdMs));
      since.set(uid, Number.NaN);
    }
  });
  return { times, stop: () => void watch.kill("SIGTERM") };
}

async function scales(member: Member, driver: CsiDriver): Promise<void> {
  const { kubectl } = member;
  const names = async (pod: string): Promise<string> => kubectl.succeed("exec", pod, "--", "cat", "/data/names");
  assert.equal(await names("db-1"), "db-1\n");
  await kubectl.succeed("scale", "statefulset/db", "--replicas=3");
  await member.rolledOut("statefulset/db");
  await kubectl.succeed("scale", "statefulset/db", "--replicas=1");
  const isLast = async (): Promise<boolean> =>
    (await kubectl.succeed("get", "volumeattachments", "-o", "name")).split("\n").length === 2;
  await until("two volumes to be detached", isLast, limitMs);
  await kubectl.succeed("scale", "statefulset/db", "--replicas=2");
  await member.rolledOut("statefulset/db");
  assert.equal(await names("db-1"), "db-1\ndb-1\n", "the claim is the same as before");
  await kubectl.succeed("delete", "pod", "db-1");
  await member.rolledOut("statefulset/db");
  assert.equal(await names("db-1"), "db-1\ndb-1\ndb-1\n");
  assert.deepEqual(driver.violations, []);
}

async function grows(member: Member, driver: CsiDriver): Promise<void> {
  const { kubectl } = member;
  const uid = await kubectl.succeed("get", "pvc", "data-db-0", "-o", "jsonpath={.metadata.uid}");
  await kubectl.succeed("patch", "pvc", "data-db-0", "-p", '{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}');
  await member.shows(
    /^2Gi *$/m,
    "get",
    "pvc",
    "data-db-0",
    "-o",
    "jsonpath={.status.capacity.storage} {.status.conditions}",
  );
  assert.equal(driver.volumes.size(`handle-${uid}`), 2 * 2 ** 30);
}

async function ends(member: Member, driver: CsiDriver): Promise<void> {
  const { kubectl } = member;
  const use = watchUse(member);
  try {
    await kubectl.succeed("delete", "pvc", "data-db-0", "--wait=false");
    await member.shows(/^data-db-0 +Terminating/m, "get", "pvc");
    await kubectl.succeed("delete", "statefulset", "db", "--cascade=foreground");
    await until("nothing to be in use", async () => use.emptied() !== undefined, limitMs);
    await member.shows(/No resources found/, "get", "volumeattachments");
    const unstaged = driver.callsOf("NodeUnstageVolume").at(-1)?.atMs ?? 0;
    console.log(`NodeUnstageVolume to volumesInUse without it: ${Math.round((use.emptied() ?? 0) - unstaged)} ms`);
    await kubectl.succeed("delete", "pvc", "--all", "--timeout=60s");
    await member.shows(/No resources found/, "get", "pv");
  } finally {
    use.stop();
  }
  assert.ok(driver.volumes.isIdle);
  assert.deepEqual(driver.violations, []);
}

const title = "a StatefulSet with claims scales, loses a pod, grows and is deleted under Kubernetes' own controllers";
test(title, { skip: noControlPlane || noKubectl }, async () => {
  await withMember("serverTLSBootstrap: true\n", async (member) => {
    const root = member.node.podwright.layout.kubeletRoot;
    using directory = testDirectory();
    await using driver = new CsiDriver({ root, directory: directory.path });
    const kubelet = member.start();
    await member.shows(/^node1 +Ready/m, "get", "nodes");
    await member.approveServing();
    await driver.start();
    await member.shows(new RegExp(driver.name), "get", "csinode", "node1", "-o", "jsonpath={.spec.drivers[*].name}");
    await using controllers = new CsiControllers(member.kubectl, driver.name);
    const starts = watchStarts(member);
    try {
      await deployWithClaims(member, driver.name, 2);
      await scales(member, driver);
      await grows(member, driver);
      await ends(member, driver);
      console.log(`pod created to Ready: ${starts.times.join(", ")} ms`);
      assert.ok(starts.times.length >= 5);
    } catch (error) {
      console.error(controllers.errors.slice(-3), driver.calls.slice(-10));
      throw error;
    } finally {
      starts.stop();
    }
    kubelet.child.kill("SIGTERM");
    await kubelet.ended;
  });
});
