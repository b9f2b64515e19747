import assert from "node:assert/strict";
import { readFile, readlink } from "node:fs/promises";
import { describe, test } from "node:test";
import type { Cri } from "../../src/ports/cri.ts";
import { ContainerState, PodSandboxState } from "../../src/ports/gen/runtime/v1/api_pb.js";
import { DEMO_IMAGE } from "../../src/private-runtime/built-in-images.ts";
import { ensurePrivateRuntime } from "../../src/private-runtime/containerd.ts";
import { preflight, requireReady } from "../../src/private-runtime/preflight/preflight.ts";
import { stopPrivateRuntime } from "../../src/private-runtime/stop.ts";
import { machine } from "../support/machine.ts";
import { podManifest, podObject, politeSleep } from "../support/manifests.ts";
import { Podwright, sleep, withPodwright } from "../support/podwright.ts";
import { vectorJson, vectorText } from "../support/vectors.ts";

interface Recorded {
  readonly metadata: { readonly name: string };
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}
const recorded = vectorJson<{ sandboxes: Recorded[]; containers: Recorded[] }>("cri.json");

/** That the process is in a cgroup of its own below this one, and that this one has the recorded limits. */
async function expectCgroup(pod: string, pid: number): Promise<void> {
  assert.match(await readFile(`/proc/${pid}/cgroup`, "utf8"), new RegExp(`:${pod}/[0-9a-f]{64}$`, "m"));
  const read = async (path: string): Promise<string> => (await readFile(`/sys/fs/cgroup/${path}`, "utf8")).trim();
  if (machine.cgroups.version === 2) {
    assert.deepEqual([await read(`${pod}/cpu.max`), await read(`${pod}/memory.max`)], ["20000 100000", "67108864"]);
    return;
  }
  const go = (file: string): string | undefined =>
    new RegExp(`burstable/pod\\*/${file.replaceAll(".", "\\.")} (\\d+)$`, "m").exec(vectorText("cgroups-v1.txt"))?.[1];
  for (const [controller, file] of [
    ["cpu", "cpu.shares"],
    ["cpu", "cpu.cfs_quota_us"],
    ["memory", "memory.limit_in_bytes"],
  ] as const) {
    assert.equal(await read(`${controller}${pod}/${file}`), go(file), file);
  }
}

/** A pod as another node agent would have made it. */
async function runForeignPod(cri: Cri): Promise<string> {
  const labels = {
    "io.kubernetes.pod.name": "foreign",
    "io.kubernetes.pod.namespace": "default",
    "io.kubernetes.pod.uid": "00000000-1111-2222-3333-444444444444",
  };
  const config = {
    metadata: { name: "foreign", uid: labels["io.kubernetes.pod.uid"], namespace: "default", attempt: 0 },
    labels,
    linux: { securityContext: {} },
  };
  const { podSandboxId } = await cri.runtime.runPodSandbox({ config });
  const { containerId } = await cri.runtime.createContainer({
    podSandboxId,
    config: {
      metadata: { name: "app" },
      image: { image: DEMO_IMAGE },
      command: ["sleep", "3600"],
      labels: { ...labels, "io.kubernetes.container.name": "app" },
      linux: {},
    },
    sandboxConfig: config,
  });
  await cri.runtime.startContainer({ containerId });
  return podSandboxId;
}

// Two at a time: most of the time they wait.
describe("with other tools", { concurrency: 2 }, () => {
  test("other tools see a pod as the Go kubelet's: labels, annotations, log files and links, cgroups", async () => {
    await withPodwright(async (podwright) => {
      // The recorded pod `web`, with 50m to 200m of CPU and 16Mi to 64Mi of memory.
      const manifest = vectorText("manifests/a.yaml").replaceAll("docker.io/library/busybox:latest", DEMO_IMAGE);
      await podwright.succeed("run", "--detach", await podwright.manifest("web.yaml", manifest));
      const { uid, containers, logDirectory } = await podwright.pod("web");
      const [container] = containers;
      assert.ok(container !== undefined);
      using cri = podwright.connect();
      const [sandbox] = (await cri.runtime.listPodSandbox({})).items;
      const [listed] = (await cri.runtime.listContainers({})).containers;
      assert.ok(sandbox !== undefined && listed !== undefined);

      const [goSandbox, goContainer] = [recorded.sandboxes, recorded.containers].map((list) =>
        list.find(({ metadata, labels }) =>
          `${metadata.name} ${labels["io.kubernetes.pod.name"]}`.includes("web-node1"),
        ),
      );
      assert.ok(goSandbox !== undefined && goContainer !== undefined);
      const own = { "io.kubernetes.pod.name": "web", "io.kubernetes.pod.uid": uid };
      assert.deepEqual(sandbox.labels, { ...goSandbox.labels, ...own });
      assert.deepEqual(listed.labels, { ...goContainer.labels, ...own });
      const { "io.kubernetes.container.hash": hash, ...annotations } = listed.annotations;
      const { "io.kubernetes.container.hash": _otherImage, ...goAnnotations } = goContainer.annotations;
      assert.deepEqual(annotations, goAnnotations);
      assert.match(hash ?? "", /^[0-9a-f]+$/);

      assert.equal(logDirectory, `${podwright.layout.podLogs}/default_web_${uid}`);
      const link = `${podwright.layout.containerLogs}/web_default_web-${container.id}.log`;
      assert.equal(await readlink(link), `${logDirectory}/web/0.log`);
      assert.match(await readFile(link, "utf8"), /^\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-][\d:]+) stdout F up\n/);
      await expectCgroup(
        `${podwright.layout.cgroupRoot}/kubepods/burstable/pod${uid}`,
        await podwright.firstProcess(container.id),
      );
    });
  });

  test("on a shared runtime podwright runs and stops its own pods, also with equal names, and touches no others", async () => {
    const host = await Podwright.open();
    try {
      const { layout, runtime } = host;
      const facts = requireReady(await preflight({ ...machine, layout, searchPath: [runtime.binDirectory] }));
      await ensurePrivateRuntime(machine, layout, facts);
      using cri = host.connect();
      const foreign = await runForeignPod(cri);
      await withPodwright(async (podwright) => {
        const paths = await Promise.all(
          ["mine", "foreign"].map((name) => podwright.manifest(`${name}.yaml`, podManifest(name, politeSleep))),
        );
        await podwright.succeed("run", "--detach", "--runtime-endpoint", layout.containerd.endpoint, ...paths);
        assert.deepEqual(
          (await podwright.pods()).map(({ name, ready }) => [name, ready]),
          [
            ["foreign", true],
            ["mine", true],
          ],
        );
        // Housekeeping has been twice by then.
        await sleep(4_500);
        await podwright.succeed("stop", "mine", "foreign");
      }, runtime);

      const { items } = await cri.runtime.listPodSandbox({});
      assert.deepEqual(
        items.map(({ id, state }) => [id, state]),
        [[foreign, PodSandboxState.SANDBOX_READY]],
      );
      const { containers } = await cri.runtime.listContainers({});
      assert.deepEqual(
        containers.map(({ state }) => state),
        [ContainerState.CONTAINER_RUNNING],
      );
      await cri.runtime.stopPodSandbox({ podSandboxId: foreign });
      await cri.runtime.removePodSandbox({ podSandboxId: foreign });
      assert.deepEqual(await stopPrivateRuntime(machine, layout, facts.programs), {
        stopped: true,
        leftovers: [],
      });
    } finally {
      await host.cleanUp();
    }
  });

  test("a name can be reused in another namespace, and selectors that match two pods are reported", async () => {
    await withPodwright(async (podwright) => {
      const other = podObject("web", politeSleep) as { metadata: { namespace?: string } };
      other.metadata.namespace = "tools";
      const paths = [
        await podwright.manifest("web.yaml", podManifest("web", politeSleep)),
        await podwright.manifest("other.yaml", JSON.stringify(other)),
      ];
      await podwright.succeed("run", "--detach", ...paths);
      const both = await podwright.run(["stop", "web"]);
      assert.deepEqual(
        [both.exitCode, both.stderr.includes("several pods: default/web, tools/web")],
        [2, true],
        both.stderr,
      );
      await podwright.succeed("stop", "tools/web");
      assert.deepEqual(
        (await podwright.pods()).map(({ namespace }) => namespace),
        ["default"],
      );
    });
  });
});
