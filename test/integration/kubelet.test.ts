import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { systemHashing } from "../../src/linux/files/hashing.ts";
import { readMountInfo } from "../../src/linux/files/mountinfo.ts";
import { runtimeLayout } from "../../src/private-runtime/layout.ts";
import type { PodView } from "../../src/server/local-api.ts";
import type { RunningCommand } from "../support/command.ts";
import { type KubeletNode, withKubeletNode } from "../support/kubelet-node.ts";
import { sleep, until } from "../support/podwright.ts";
import { vectorJson, vectorText } from "../support/vectors.ts";

const busybox = "docker.io/library/busybox:latest";

interface RecordedContainer {
  readonly metadata: { readonly name: string };
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}
interface RecordedSandbox {
  readonly metadata: { readonly name: string; readonly namespace: string; readonly uid: string };
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}
const recorded = vectorJson<{ sandboxes: RecordedSandbox[]; containers: RecordedContainer[] }>("cri.json");

const isRunning =
  (name: string) =>
  (pods: readonly PodView[]): boolean => {
    return pods.some((pod) => pod.name === name && pod.state === "syncing" && pod.ready);
  };

async function containerIds(node: KubeletNode): Promise<string[]> {
  const pods = await node.podwright.pods();
  return pods.flatMap((pod) => pod.containers.map(({ id }) => id)).toSorted();
}

/** SIGTERM; its pods keep running. */
async function endKubelet(kubelet: RunningCommand): Promise<void> {
  kubelet.child.kill("SIGTERM");
  const { exitCode, stderr } = await kubelet.ended;
  assert.equal(exitCode, 0, stderr);
}

const withoutSeen = ({ "kubernetes.io/config.seen": _seen, ...rest }: Readonly<Record<string, string>>): object => rest;

test("static pods run like the Go kubelet's, on a runtime that starts later, and are removed with their files", async () => {
  await withKubeletNode(async (node) => {
    const { podwright } = node;
    await node.write("a.yaml", vectorText("manifests/a.yaml"));
    await node.write("c.yaml", vectorText("manifests/c.yaml"));
    const kubelet = node.startKubelet();
    await kubelet.prints(/container runtime does not answer; waiting for it/);
    await node.startContainerd(busybox);
    await kubelet.prints(/container runtime answers/);
    await node.answers();
    await podwright.waitFor("web-node1 to run", isRunning("web-node1"));
    // The runtime answers before its images are there: the first try may have been a pull.
    await podwright.waitFor("fixed-node1 to have run", (pods) =>
      pods.some(({ name, containers: [first] }) => name === "fixed-node1" && first !== undefined && first.id !== ""),
    );
    assert.match(kubelet.stderr, /serving the kubelet API/);

    using cri = podwright.connect();
    const { items: sandboxes } = await cri.runtime.listPodSandbox({});
    const { containers } = await cri.runtime.listContainers({});
    for (const name of ["web-node1", "fixed-node1"]) {
      const wanted = recorded.sandboxes.find((sandbox) => sandbox.metadata.name === name);
      const sandbox = sandboxes.find((candidate) => candidate.metadata?.name === name);
      assert.ok(wanted && sandbox, name);
      assert.equal(sandbox.metadata?.namespace, wanted.metadata.namespace);
      // Only a UID that the manifest names is the same (docs/compatibility.md).
      const uid = sandbox.metadata?.uid ?? "";
      if (name === "fixed-node1") assert.equal(uid, wanted.metadata.uid);
      assert.match(uid, /^[0-9a-f-]{32,36}$/);
      const own = (value: object): object =>
        JSON.parse(JSON.stringify(value).replaceAll(wanted.metadata.uid, uid)) as object;
      assert.deepEqual(sandbox.labels, own(wanted.labels));
      assert.deepEqual(withoutSeen(sandbox.annotations), own(withoutSeen(wanted.annotations)));
      assert.match(sandbox.annotations["kubernetes.io/config.seen"] ?? "", /^\d{4}-.*Z$/);

      const recordedContainer = recorded.containers.find((other) => other.labels["io.kubernetes.pod.name"] === name);
      const container = containers.find((candidate) => candidate.podSandboxId === sandbox.id);
      assert.ok(recordedContainer && container, name);
      assert.deepEqual(container.labels, own(recordedContainer.labels));
      const restartCount = container.annotations["io.kubernetes.container.restartCount"] ?? "";
      assert.deepEqual(container.annotations, {
        ...recordedContainer.annotations,
        "io.kubernetes.container.restartCount": restartCount,
      });
    }
    // It runs from its start on, and listens a moment later.
    await until("web-node1 to answer at its host port", async () => {
      return await fetch("http://127.0.0.1:18080/").then(
        () => true,
        () => false,
      );
    });

    const uid = (await podwright.pod("web-node1")).uid;
    const modes = async (...names: readonly string[]): Promise<string[]> => {
      const infos = await Promise.all(names.map((name) => stat(join(podwright.layout.kubeletRoot, name))));
      return infos.map(({ mode }) => (mode & 0o7777).toString(8));
    };
    const ofPod = ["", "/containers", "/plugins", "/volumes", "/containers/web", "/etc-hosts"];
    assert.deepEqual(await modes("", "pods", ...ofPod.map((part) => `pods/${uid}${part}`)), [
      ...["750", "750", "750", "750", "750", "750", "750", "644"],
    ]);

    await node.remove("a.yaml");
    await node.remove("c.yaml");
    await podwright.waitFor("both pods to go", (pods) => pods.length === 0, 30_000);
    assert.deepEqual(await readdir(join(podwright.layout.kubeletRoot, "pods")), []);
    await endKubelet(kubelet);
    await node.expectNothingLeft();
  });
});

const sleeper = (name: string, seconds: number): string => `
apiVersion: v1
kind: Pod
metadata: {name: ${name}}
spec:
  terminationGracePeriodSeconds: 2
  containers: [{name: c, image: "podwright.local/demo:1", command: [sleep, "${seconds}"]}]
`;

test("a changed file ends the old pod before the new one starts, one that returns restarts it, and a broken one changes nothing", async () => {
  await withKubeletNode(async (node) => {
    const { podwright } = node;
    await node.startContainerd();
    await node.write("one.yaml", sleeper("one", 1001));
    await node.write("two.yaml", sleeper("two", 1002));
    const kubelet = node.startKubelet();
    await node.answers();
    const running = await podwright.waitFor("both pods to run", (pods) => {
      return isRunning("one-node1")(pods) && isRunning("two-node1")(pods);
    });
    const before = running.find((pod) => pod.name === "one-node1");
    const ids = await containerIds(node);

    await node.write("broken.yaml", "apiVersion: v1\nkind: Pod\nspec: {containers: [");
    await node.write("two.yaml", sleeper("two", 1002).replace("sleep", "sleep\t\0"));
    await node.write("bad.yaml", sleeper("three", 1003).replace("image:", "imagePullPolicy: Sometimes, image:"));
    await kubelet.prints(/broken\.yaml/);
    await kubelet.prints(/two\.yaml/);
    await kubelet.prints(/bad\.yaml/);
    for (const [command, name, file] of [
      ["why", "three", "bad"],
      ["timeline", "three-node1", "bad"],
      ["logs", "broken", "broken"],
    ] as const) {
      const { exitCode, stderr } = await podwright.run([command, name]);
      assert.equal(exitCode, 2, stderr);
      assert.match(stderr, new RegExp(`pod "${name}" not found: its manifest is rejected: .*/${file}\\.yaml:\\d`, "u"));
    }
    await sleep(500);
    assert.deepEqual(await containerIds(node), ids, "the running pods were left alone");

    await node.write("one.yaml", sleeper("one", 1003));
    const after = await podwright.waitFor("the new pod to run", (pods) => {
      return pods.length === 2 && pods.some((pod) => pod.name === "one-node1" && pod.uid !== before?.uid && pod.ready);
    });
    const replaced = after.find((pod) => pod.name === "one-node1");
    const entries = await podwright.journal();
    const finished = entries.find((entry) => entry.pod?.uid === before?.uid && entry.what === "PodTerminated");
    const started = entries.find((entry) => entry.pod?.uid === replaced?.uid && entry.what === "RunPodSandbox");
    assert.ok(finished && started, "the journal tells of both");
    assert.ok(finished.seq < started.seq, "the old pod had ended");
    assert.equal(existsSync(join(podwright.layout.kubeletRoot, "pods", before?.uid ?? "")), false);

    const [here, away] = [podwright.path("manifests.d/one.yaml"), podwright.path("one.yaml")];
    await rename(here, away);
    await rename(away, here);
    await podwright.waitFor("the pod to be started anew, as its manifest was away for a moment", (pods) =>
      pods.some(({ uid, ready, containers: [only] }) => uid === replaced?.uid && ready && only?.restartCount === 1),
    );
    await node.write("../one.yaml", await node.read("one.yaml"));
    await rename(away, here);
    await sleep(500);
    const [kept] = (await podwright.pods()).filter(({ uid }) => uid === replaced?.uid);
    assert.deepEqual(
      [kept?.state, kept?.containers[0]?.restartCount],
      ["syncing", 1],
      "what was moved onto it is the same",
    );
  });
});

test("SIGTERM leaves the pods running, and the next start adopts them", async () => {
  await withKubeletNode(async (node) => {
    const { podwright } = node;
    await node.startContainerd();
    await node.write("one.yaml", sleeper("one", 1001));
    const first = node.startKubelet("-v", "4");
    await node.answers();
    await podwright.waitFor("the pod to run", isRunning("one-node1"));
    await until(
      "healthz",
      async () => (await node.healthz("/healthz/syncloop").catch(() => undefined))?.status === 200,
    );
    assert.deepEqual(await node.healthz("/healthz"), { status: 200, body: "ok" });
    assert.deepEqual(await node.healthz("/healthz/ping"), { status: 200, body: "ok" });
    assert.equal((await node.healthz("/healthz?verbose")).status, 200);
    for (const path of ["/", "/metrics", "/pods", "/healthz/none", "/configz"]) {
      assert.equal((await node.healthz(path)).status, 404, path);
    }
    const ids = await containerIds(node);

    const rival = node.startKubelet("--state-dir", podwright.path("rival"), "--healthz-port", "0");
    const refused = await rival.ended;
    assert.equal(refused.exitCode, 3);
    assert.match(refused.stderr, /is used by another podwright/);
    await rm(runtimeLayout(podwright.path("rival"), systemHashing).runDirectory, { recursive: true });
    const applied = await podwright.run(["run", "--detach", await podwright.manifest("run.yaml", sleeper("run", 5))]);
    assert.equal(applied.exitCode, 2);
    assert.match(applied.stderr, /does not accept pods of podwright run/);

    await endKubelet(first);
    const second = node.startKubelet("--healthz-port", "0");
    await node.answers();
    await podwright.waitFor("the pod to be known", isRunning("one-node1"));
    await sleep(2500);
    await assert.rejects(node.healthz("/healthz"), /fetch failed/, "port 0 is no port");
    assert.deepEqual(await containerIds(node), ids, "the same containers run");
    assert.equal((await podwright.container("one-node1", "c")).restartCount, 0);
    await endKubelet(second);
  });
});

test("a start that fails because of a wrong kubeconfig leaves no mount behind", async () => {
  await withKubeletNode(async (node) => {
    const { kubeletRoot } = node.podwright.layout;
    const { exitCode, stderr } = await node.startKubelet("--kubeconfig", node.podwright.path("missing")).ended;
    assert.equal(exitCode, 2, stderr);
    const mounts = readMountInfo();
    assert.deepEqual(
      mounts.filter(({ target }) => target.startsWith(kubeletRoot)),
      [],
    );
  });
});
