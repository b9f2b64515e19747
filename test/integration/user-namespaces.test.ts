import assert from "node:assert/strict";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { podManifest, politeSleep } from "../support/manifests.ts";
import { type Podwright, until, withPodwright } from "../support/podwright.ts";

/** A pod that shows what its files and processes look like from inside, and writes some. */
const manifest = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {key: value}
---
apiVersion: v1
kind: Pod
metadata: {name: apart}
spec:
  hostUsers: false
  terminationGracePeriodSeconds: 2
  securityContext: {fsGroup: 2000}
  containers:
  - name: app
    image: podwright.local/demo:1
    command:
    - sh
    - -c
    - |
      echo map $(cat /proc/self/uid_map)
      for path in /etc/hosts /dev/termination-log /data /memory /settings/..data/key; do
        echo $path $(stat -L -c '%u:%g' $path)
      done
      echo mine > /data/mine
      echo said > /dev/termination-log
      echo done
      ${politeSleep}
    volumeMounts:
    - {name: data, mountPath: /data}
    - {name: memory, mountPath: /memory}
    - {name: settings, mountPath: /settings}
  - name: neighbour
    image: podwright.local/demo:1
    command: [sh, -c, "${politeSleep}"]
  volumes:
  - {name: data, emptyDir: {}}
  - {name: memory, emptyDir: {medium: Memory}}
  - {name: settings, configMap: {name: settings}}
`;

/** Starts the runtime with a pod without special needs, and queries it. */
async function canMakeUserNamespaces(podwright: Podwright): Promise<boolean> {
  await podwright.succeed("run", "--detach", await podwright.manifest("plain.yaml", podManifest("plain", politeSleep)));
  using cri = podwright.connect();
  const { runtimeHandlers } = await cri.runtime.status({});
  return runtimeHandlers.some(({ name, features }) => name === "" && features?.userNamespaces === true);
}

function skip(t: TestContext, podwright: Podwright, why: string): void {
  t.skip(`containerd ${podwright.runtime.version} with this machine's runc ${why}`);
}

test("a pod with a user namespace is rejected if the runtime has none", async (t) => {
  await withPodwright(async (podwright) => {
    if (await canMakeUserNamespaces(podwright)) return skip(t, podwright, "makes user namespaces");
    await podwright.succeed("run", "--detach", "--wait", "none", await podwright.manifest("apart.yaml", manifest));
    const refused = (text: string): boolean => /hostUsers: false.*runtime does not support user namespaces/.test(text);
    await podwright.waitFor("the refusal to be shown", (pods) =>
      pods.some((pod) => pod.name === "apart" && pod.containers.every(({ message }) => refused(message))),
    );
    using cri = podwright.connect();
    const { items } = await cri.runtime.listPodSandbox({});
    assert.deepEqual(
      items.map(({ metadata }) => metadata?.name),
      ["plain"],
      "nothing of it was started",
    );
  });
});

test("root in a pod with a user namespace is unprivileged on the node, and owns its files", async (t) => {
  await withPodwright(async (podwright) => {
    if (!(await canMakeUserNamespaces(podwright))) return skip(t, podwright, "makes no user namespaces");
    await podwright.succeed("run", "--detach", await podwright.manifest("apart.yaml", manifest));
    const isReady = (name: string) => (pods: readonly { name: string; ready: boolean }[]) =>
      pods.some((pod) => pod.name === name && pod.ready);
    await podwright.waitFor("the pod to run", isReady("apart"), 120_000);
    const { uid, containers } = await podwright.pod("apart");

    const directory = join(podwright.layout.kubeletRoot, "pods", uid);
    const { uidMappings } = JSON.parse(await readFile(join(directory, "userns"), "utf8")) as {
      readonly uidMappings: readonly [{ readonly hostId: number; readonly length: number }];
    };
    const [{ hostId, length }] = uidMappings;
    assert.equal(length, 65_536);
    assert.ok(hostId >= 65_536);
    for (const { id } of containers) {
      const process = `/proc/${await podwright.firstProcess(id)}`;
      assert.equal((await stat(process)).uid, hostId, "root inside is the first of the pod's ids outside");
    }

    let text = "";
    const isDone = async (): Promise<boolean> => {
      text = await readFile(containers[0]?.logPath ?? "", "utf8");
      return text.includes("done");
    };
    await until(() => `the container to be done; it said ${text}`, isDone, 60_000);
    assert.match(text, new RegExp(`map 0 ${hostId} 65536`));
    for (const path of ["/etc/hosts", "/dev/termination-log"]) assert.match(text, new RegExp(`${path} 0:0`));
    for (const path of ["/data", "/memory", "/settings/..data/key"]) assert.match(text, new RegExp(`${path} 0:2000`));

    // With ids mapped, the disk holds what the pod sees: another pod, or the same one with other ids, reads it alike.
    const mine = await stat(join(directory, "volumes/kubernetes.io~empty-dir/data/mine"));
    assert.deepEqual([mine.uid, mine.gid], [0, 2000]);

    const engine = await podwright.enginePid();
    await podwright.kill(engine);
    await podwright.succeed(
      "run",
      "--detach",
      await podwright.manifest("other.yaml", manifest.replace("apart", "other")),
    );
    await podwright.waitFor("the other pod to run", isReady("other"), 120_000);
    const other = JSON.parse(
      await readFile(join(podwright.layout.kubeletRoot, "pods", (await podwright.pod("other")).uid, "userns"), "utf8"),
    ) as { readonly uidMappings: readonly [{ readonly hostId: number }] };
    assert.notEqual(other.uidMappings[0].hostId, hostId, "two pods have no id in common, across a kill of podwright");
    assert.deepEqual(
      (await podwright.pod("apart")).containers.map(({ id }) => id),
      containers.map(({ id }) => id),
    );
  });
});
