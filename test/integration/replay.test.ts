import assert from "node:assert/strict";
import { readFile, stat, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { withKubeletNode } from "../support/kubelet-node.ts";
import { podManifest, podObject, politeSleep } from "../support/manifests.ts";
import { withPodwright } from "../support/podwright.ts";

interface Manifest {
  readonly spec: { readonly containers: readonly object[] };
}

const secret = "correct-horse-battery-staple";

/** A pod whose container has these fields too. */
function podWith(name: string, script: string, fields: object): string {
  const pod = podObject(name, script) as Manifest;
  const containers = pod.spec.containers.map((container) => ({ ...container, ...fields }));
  return JSON.stringify({ ...pod, spec: { ...pod.spec, containers } });
}

test("a recording of a crashing pod and a failing probe replays to equal decisions; a changed one shows the difference", async () => {
  await withPodwright(async (podwright) => {
    const recording = podwright.path("node.rec");
    const nowhere = await podwright.run(["run", "--detach", "--record", "/none/node.rec"]);
    assert.match(nowhere.stderr, /the engine did not start: --record \/none\/node\.rec: /);
    assert.equal(await podwright.containerdPid(), undefined, "a wrong path is told before anything is started");
    const env = { env: [{ name: "PASSWORD", value: secret }] };
    const liveness = { exec: { command: ["test", "-e", `/${secret}`] }, periodSeconds: 1, failureThreshold: 1 };
    await podwright.succeed(
      ...["run", "--detach", "--wait", "none", "--record", recording],
      await podwright.manifest("crash.json", podWith("crash", `sleep 1; echo ${secret} >&2; exit 3`, env)),
      await podwright.manifest("deaf.json", podWith("deaf", politeSleep, { ...env, livenessProbe: liveness })),
    );
    await podwright.waitFor("one in back-off, one killed for its probe", (pods) => {
      const container = (name: string) => pods.find((pod) => pod.name === name)?.containers[0];
      return container("crash")?.reason === "CrashLoopBackOff" && (container("deaf")?.restartCount ?? 0) > 0;
    });
    const other = await podwright.run([
      "run",
      "--detach",
      "--record",
      podwright.path("other"),
      podwright.path("crash.json"),
    ]);
    assert.equal(other.exitCode, 2);
    assert.match(other.stderr, /the running engine records to .*node\.rec/);
    await podwright.kill(await podwright.enginePid());
    await podwright.succeed("run", "--detach", "--wait", "none", "--record", recording);
    await podwright.succeed("stop", "--grace", "0", "crash", "deaf");

    const text = await readFile(recording, "utf8");
    assert.equal((await stat(recording)).mode & 0o777, 0o600);
    assert.doesNotMatch(text, new RegExp(secret), "what manifests hold in secret is not recorded");
    assert.match(await podwright.succeed("replay", recording), /decisions about 2 pods in 2 lives: all unchanged/);

    const changed = podwright.path("changed.rec");
    const lines = text.split("\n");
    const at = lines.findIndex((line) => line.includes(`"name":"crash"`) && line.includes(`"restart":true`));
    lines[at] = (lines[at] ?? "").replaceAll('"attempt":1', '"attempt":7');
    await writeFile(changed, lines.join("\n"));
    const { exitCode, stdout } = await podwright.run(["replay", changed, "--pod", "crash"]);
    assert.equal(exitCode, 1);
    assert.match(stdout, new RegExp(`line ${at + 1}, `));
    assert.match(stdout, /decided then\n {2}≠ start regular container app, attempt 7/);
    assert.match(stdout, /decided now\n {2}≠ start regular container app, attempt 1/);
    assert.equal((await podwright.run(["replay", changed, "--pod", "deaf"])).exitCode, 0);
    const broken = await podwright.run(["replay", podwright.path("crash.json")]);
    assert.equal(broken.exitCode, 2);
    assert.match(broken.stderr, /line 1: not a podwright recording/);
  });
});

test("a kubelet records its decisions about its static pods", async () => {
  await withKubeletNode(async (node) => {
    await node.startContainerd();
    const recording = node.podwright.path("node.rec");
    const kubelet = node.startKubelet("--record", recording);
    await node.answers();
    const running = (ready: boolean): Promise<unknown> =>
      node.podwright.waitFor("the static pod", (pods) => (ready ? pods.some((pod) => pod.ready) : pods.length === 0));
    await node.write("static.json", podManifest("static", politeSleep));
    await running(true);
    assert.match(await node.podwright.succeed("replay", recording, "--pod", "static-node1"), /all unchanged/);
    await node.remove("static.json");
    await running(false);
    kubelet.child.kill("SIGTERM");
    assert.equal((await kubelet.ended).exitCode, 0);
    await node.expectNothingLeft();
  });
});
