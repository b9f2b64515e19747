import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { end, goLog, identity, startGoKubelet, watch, watchMs, withoutTimes } from "../support/changing-over.ts";
import { noControlPlane, noGoKubelet } from "../support/control-plane.ts";
import { noKubectl } from "../support/kubectl.ts";
import { image, limitMs, type Member, staticPod, withMember, workload } from "../support/member.ts";
import { sleep, until } from "../support/podwright.ts";

/** {@link watch}, and looks whether all is as before. */
async function nothingChanges(
  member: Member,
  before: readonly string[],
  part: (each: string) => string = (each) => each,
): Promise<void> {
  await watch(member);
  assert.deepEqual((await identity(member)).map(part), before.map(part));
  assert.equal(await member.kubectl.succeed("exec", "deployment/web", "--", "cat", "/etc/settings/greeting"), "hello");
  assert.match(await member.kubectl.succeed("logs", "deployment/web"), /serving/);
}

const pod = {
  volumes: [
    { name: "settings", configMap: { name: "settings" } },
    { name: "scratch", emptyDir: {} },
  ],
  containers: [
    {
      name: "c",
      image,
      imagePullPolicy: "Never",
      command: ["sh", "-c", "trap 'exit 0' TERM; echo serving; touch /ready; sleep 3600 & wait"],
      readinessProbe: { exec: { command: ["cat", "/ready"] }, periodSeconds: 2 },
      resources: { requests: { cpu: "10m", memory: "16Mi" }, limits: { memory: "64Mi" } },
      volumeMounts: [
        { name: "settings", mountPath: "/etc/settings" },
        { name: "scratch", mountPath: "/scratch" },
      ],
    },
  ],
};

/** A pod that podwright starts before a Go kubelet has ever run on this root directory. */
const early = {
  volumes: [...pod.volumes, { name: "memory", emptyDir: { medium: "Memory" } }],
  containers: pod.containers.map((container) => ({
    ...container,
    volumeMounts: [...container.volumeMounts, { name: "memory", mountPath: "/memory" }],
  })),
};

/** The content of the container's memory volume, and its files on the node. */
async function memoryOf({ kubectl, node }: Member): Promise<readonly string[]> {
  const uid = await kubectl.succeed("get", "pods", "-l", "app=early", "-o", "jsonpath={.items[0].metadata.uid}");
  const volume = `${node.podwright.layout.kubeletRoot}/pods/${uid}/volumes/kubernetes.io~empty-dir/memory`;
  return [
    (await kubectl.succeed("exec", "deployment/early", "--", "cat", "/memory/data")).trim(),
    (await readFile(`${volume}/data`, "utf8")).trim(),
  ];
}

/**
 * A static pod without its own UID, which the Go kubelet restarts under its own UID. podwright is back before the pod
 * that the Go kubelet found is removed, while the new one runs.
 */
async function comeBackSoon(member: Member): Promise<void> {
  const { node } = member;
  const first = member.start();
  await member.shows(/^node1 +Ready/m, "get", "nodes");
  const name = "loose-node1";
  await node.write("loose.yaml", JSON.stringify({ ...staticPod, metadata: { name: "loose" } }));
  await member.shows(/^loose-node1 .*Running/m, "get", "pods");
  const loose = async (): Promise<string> => {
    const running = (await identity(member)).filter((each) => each.startsWith(`${name} containerd:`));
    return running.map(withoutTimes).join();
  };
  const own = await loose();
  first.child.kill("SIGTERM");
  await first.ended;
  const go = await startGoKubelet(member);
  try {
    const isAnew = async (): Promise<boolean> => !["", own].includes(await loose());
    await until("the Go kubelet to start the static pod under its own UID", isAnew, limitMs);
  } finally {
    await end(go);
  }
  const mirror = async (): Promise<string> =>
    await member.kubectl.succeed("get", "pod", name, "-o", "jsonpath={.metadata.uid}");
  const [its, itsMirror] = [await loose(), await mirror()];
  const again = member.start();
  await watch(member);
  assert.equal(await loose(), its, "what the Go kubelet has just started runs on");
  assert.equal(await mirror(), itsMirror, "and its mirror pod stays");
  await node.remove("loose.yaml");
  await until("the static pod to be gone", async () => !(await identity(member)).join().includes(name), limitMs);
  again.child.kill("SIGTERM");
  await again.ended;
}

/** The Go kubelet joins with podwright's credentials and root cgroup, which it expects to exist. */
async function join(member: Member): Promise<ChildProcess> {
  const { kubectl } = member;
  const first = member.start();
  await member.shows(/^node1 +Ready/m, "get", "nodes");
  await member.approveServing();
  await member.shows(/^static-node1 .*Running/m, "get", "pods");
  const data = { greeting: "hello" };
  const settings = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "settings" }, data };
  await member.apply(settings, workload("Deployment", "early", { replicas: 1 }, early));
  await member.rolledOut("deployment/early");
  await kubectl.succeed("exec", "deployment/early", "--", "sh", "-c", "echo precious > /memory/data");
  const before = (await identity(member)).filter((each) => each.startsWith("early"));
  first.child.kill("SIGTERM");
  await first.ended;
  const go = await startGoKubelet(member);
  try {
    await sleep(watchMs);
    const after = (await identity(member)).filter((each) => each.startsWith("early"));
    assert.deepEqual(after.map(withoutTimes), before.map(withoutTimes), "a pod that podwright started runs on");
    assert.deepEqual(await memoryOf(member), ["precious", "precious"]);
    // It ends under the Go kubelet, with the mounts that podwright made.
    await kubectl.succeed("delete", "deployment", "early", "--timeout=60s");
    await until("the early pod to be gone", async () => !/^early/m.test(await kubectl.succeed("get", "pods")), limitMs);
    return go;
  } catch (error) {
    await end(go);
    throw error;
  }
}

async function changeOver(member: Member): Promise<void> {
  const { kubectl, node } = member;
  let go = await join(member);
  try {
    await member.apply(workload("Deployment", "web", { replicas: 4 }, pod));
    await member.rolledOut("deployment/web");
    await sleep(3000);
    const before = await identity(member);
    assert.equal(before.length, 5);

    await end(go);
    const podwright = member.start();
    await node.answers();
    await nothingChanges(member, before);
    podwright.child.kill("SIGTERM");
    await podwright.ended;

    go = await startGoKubelet(member);
    // It resets the transition times of static pods' readiness.
    await nothingChanges(member, before, withoutTimes);
    const after = await identity(member);
    await end(go);
    const last = member.start();
    await node.answers();
    await nothingChanges(member, after);
    await kubectl.succeed("delete", "deployment", "web", "--timeout=180s");
    await node.remove("static.yaml");
    await until("the node to be empty", async () => (await node.podwright.pods()).length === 0, limitMs);
    last.child.kill("SIGTERM");
    await last.ended;
  } catch (error) {
    console.error(await goLog(member));
    throw error;
  } finally {
    await end(go);
  }
}

// For logs the API server calls only kubelets with a known certificate; this machine's cgroups have no other limits.
const settings = "evictionHard: { memory.available: 1Mi }\nserverTLSBootstrap: true\n";
const skip = noControlPlane || noGoKubelet || noKubectl;
const title = "a node changes over from the Go kubelet to podwright, back, and again, and its containers run on";
test(title, { skip }, async () => {
  await withMember(settings, changeOver);
});

test("a static pod that the Go kubelet has just restarted is not restarted by podwright", { skip }, async () => {
  await withMember(settings, comeBackSoon);
});
