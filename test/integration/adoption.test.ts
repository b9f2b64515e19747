import assert from "node:assert/strict";
import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { PodView } from "../../src/server/local-api.ts";
import type { RunningCommand } from "../support/command.ts";
import { podManifest, politeSleep } from "../support/manifests.ts";
import { actionsSince, instances, startsSince } from "../support/outages.ts";
import { sleep, until, withPodwright } from "../support/podwright.ts";

const runs =
  (...names: string[]) =>
  (pods: readonly PodView[]): boolean =>
    names.every((name) => pods.some((pod) => pod.name === name && pod.ready));

// Two at a time: most of the time they wait.
describe("an engine that is killed or stopped", { concurrency: 2 }, () => {
  test("when stopped, it leaves its pods and their runtime running; without pods it stops the runtime too", async () => {
    await withPodwright(async (podwright) => {
      const engine = async (): Promise<RunningCommand> => {
        const started = podwright.start(["engine", "--stay", "--state-dir", podwright.layout.stateDirectory]);
        await until("the engine to answer", async () => podwright.answers());
        return started;
      };
      const tell = async (running: RunningCommand): Promise<void> => {
        running.child.kill("SIGTERM");
        assert.equal((await running.ended).exitCode, 0);
      };
      const first = await engine();
      const path = await podwright.manifest("calm.yaml", podManifest("calm", politeSleep));
      await podwright.succeed("run", "--detach", path);
      const before = instances(await podwright.pods());
      await tell(first);
      assert.notEqual(await podwright.containerdPid(), undefined, "a pod needs it");

      const second = await engine();
      await podwright.waitFor("the pod to be adopted", runs("calm"));
      assert.deepEqual(instances(await podwright.pods()), before);
      await podwright.succeed("stop", "calm");
      await tell(second);
      assert.equal(await podwright.containerdPid(), undefined, "nobody needs it");
    });
  });

  test("after kill -9 the next engine adopts the pods: it keeps the containers and starts nothing", async () => {
    await withPodwright(async (podwright) => {
      const paths = [
        await podwright.manifest("always.yaml", podManifest("always", politeSleep)),
        await podwright.manifest("never.yaml", podManifest("never", politeSleep, { restartPolicy: "Never" })),
        await podwright.manifest("job.yaml", podManifest("job", "exit 0", { restartPolicy: "Never" })),
      ];
      await podwright.succeed("run", "--detach", ...paths);
      const before = instances(
        await podwright.waitFor("the job to end", (pods) => pods.some((pod) => pod.phase === "Succeeded")),
      );
      await podwright.kill(await podwright.enginePid());

      const seq = await podwright.lastSeq();
      assert.equal((await podwright.run(["ps"])).exitCode, 1);
      await podwright.succeed("run", "--detach");
      assert.deepEqual(instances(await podwright.pods()), before);
      await sleep(2_500);
      assert.deepEqual(instances(await podwright.pods()), before);
      const since = (await podwright.journal()).filter((entry) => entry.seq > seq);
      // What has ended is stopped again, because it is unknown how far the previous engine came.
      const actions = actionsSince(since, seq).filter((action) => action !== "StopPodSandbox job/");
      assert.deepEqual(actions, []);
      const flips = since.filter(
        ({ what, message }) => what === "ContainerStateChanged" && /not ready|waiting/.test(message),
      );
      assert.deepEqual(flips, [], "readiness does not flip");
    });
  });

  test("despite an unreadable stored manifest a pod is stopped and known to be gone, and that manifest's pod is left alone", async () => {
    await withPodwright(async (podwright) => {
      for (const name of ["calm", "other"]) {
        await podwright.succeed(
          ...["run", "--detach", await podwright.manifest(`${name}.yaml`, podManifest(name, politeSleep))],
        );
      }
      const before = instances(await podwright.pods()).filter((instance) => instance.startsWith("other"));
      await podwright.kill(await podwright.enginePid());
      const { manifests } = podwright.layout;
      const stored = (await readdir(manifests)).find((name) => name.startsWith("pod_default_other")) ?? "";
      const text = await readFile(join(manifests, stored), "utf8");
      await writeFile(join(manifests, stored), "{");

      await podwright.succeed("run", "--detach", podwright.path("calm.yaml"));
      assert.match(
        (await podwright.run(["doctor"])).stdout,
        /! engine: manifests +\S+pod_default_other\S+: invalid YAML/,
      );
      const end = await podwright.run(["stop", "calm"]);
      assert.deepEqual([end.exitCode, end.stderr], [0, ""]);
      await until("the engine to end", async () => (await podwright.enginePid()) === undefined);

      await writeFile(join(manifests, stored), text);
      await podwright.succeed("run", "--detach");
      assert.deepEqual(instances(await podwright.pods()), before);

      await podwright.kill(await podwright.enginePid());
      await writeFile(join(manifests, stored), "{");
      const nothing = await podwright.run(["run", "--detach"]);
      assert.deepEqual([nothing.exitCode, nothing.stdout], [1, ""]);
      assert.match(nothing.stderr, /no stored manifest can be read: \S+pod_default_other/);
      await podwright.succeed("run", "--detach", podwright.path("other.yaml"));
      assert.notDeepEqual(instances(await podwright.pods()), before, "the new pod has taken the old one's place");
      await podwright.succeed("stop", "other");
    });
  });

  test("an engine that ends without pods keeps the files of one whose stored manifest it cannot read", async () => {
    await withPodwright(async (podwright) => {
      const { manifests, kubeletRoot } = podwright.layout;
      const paths = [
        await podwright.manifest("calm.yaml", podManifest("calm", politeSleep)),
        await podwright.manifest("other.yaml", podManifest("other", politeSleep)),
      ];
      await podwright.succeed("run", "--detach", ...paths);
      const { uid } = await podwright.pod("other");
      await podwright.kill(await podwright.enginePid());
      await podwright.removeSandbox(uid);
      const stored = (await readdir(manifests)).find((name) => name.startsWith("pod_default_other")) ?? "";
      const text = await readFile(join(manifests, stored), "utf8");
      await writeFile(join(manifests, stored), "{");

      await podwright.succeed("run", "--detach", podwright.path("calm.yaml"));
      await podwright.succeed("stop", "calm");
      await until("the engine to end", async () => (await podwright.enginePid()) === undefined);
      assert.ok((await stat(join(kubeletRoot, "pods", uid))).isDirectory());

      await writeFile(join(manifests, stored), text);
      await podwright.succeed("run", "--detach");
      assert.equal((await podwright.pod("other")).uid, uid);
      await podwright.succeed("stop", "other");
    });
  });

  test("a container that exited while no engine ran is restarted once, following its policy; the others are untouched", async () => {
    await withPodwright(async (podwright) => {
      const names = ["always", "onfailure", "never", "calm"];
      const policies = { always: "Always", onfailure: "OnFailure", never: "Never", calm: "Always" } as const;
      const paths = await Promise.all(
        Object.entries(policies).map(([name, restartPolicy]) =>
          podwright.manifest(`${name}.yaml`, podManifest(name, politeSleep, { restartPolicy })),
        ),
      );
      await podwright.succeed("run", "--detach", ...paths);
      const ids = new Map((await podwright.pods()).map((pod) => [pod.name, pod.containers[0]?.id ?? ""]));
      await podwright.kill(await podwright.enginePid());
      const seq = await podwright.lastSeq();
      for (const name of names.slice(0, 3)) await podwright.kill(await podwright.firstProcess(ids.get(name) ?? ""));

      await podwright.run(["run", "--detach", "--wait", "none"]);
      const pods = await podwright.waitFor(
        "restarts",
        (all) => runs("always", "onfailure", "calm")(all) && all.some((pod) => pod.phase === "Failed"),
      );
      await sleep(1_500);
      const starts = startsSince(await podwright.journal(), seq);
      assert.deepEqual(starts.toSorted(), [
        "CreateContainer always/app",
        "CreateContainer onfailure/app",
        "StartContainer always/app",
        "StartContainer onfailure/app",
      ]);
      const view = (name: string) => pods.find((pod) => pod.name === name)?.containers[0];
      assert.equal(view("always")?.restartCount, 1);
      assert.equal(view("onfailure")?.restartCount, 1);
      assert.equal(view("calm")?.id, ids.get("calm"));
      assert.deepEqual([view("never")?.restartCount, view("never")?.exitCode], [0, 137]);
    });
  });
});
