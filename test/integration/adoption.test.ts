import assert from "node:assert/strict";
import { test } from "node:test";
import { systemProcesses } from "../../src/linux/processes.ts";
import type { JournalEntry } from "../../src/journal/entry.ts";
import type { PodView } from "../../src/server/engine.ts";
import { podManifest, politeSleep } from "../support/manifests.ts";
import { type Podwright, sleep, until, withPodwright } from "../support/podwright.ts";

const runs =
  (...names: string[]) =>
  (pods: readonly PodView[]): boolean =>
    names.every((name) => pods.some((pod) => pod.name === name && pod.ready));

/** Ids and restart counts: what must not change. */
function instances(pods: readonly PodView[]): string[] {
  return pods.flatMap((pod) =>
    pod.containers.map(({ name, id, restartCount }) => `${pod.name}/${name} ${id} ${restartCount}`),
  );
}

/** What was asked of the runtime since the entry, as `StartContainer web/app`. */
function actionsSince(entries: readonly JournalEntry[], seq: number): string[] {
  return entries
    .filter((entry) => entry.seq > seq && entry.kind === "action")
    .map(({ what, pod, container = "" }) => `${what} ${pod?.name ?? ""}/${container}`);
}

async function lastSeq(podwright: Podwright): Promise<number> {
  return (await podwright.journal()).at(-1)?.seq ?? 0;
}

test("after kill -9 of the engine the next one adopts the pods: the same containers, and nothing is started", async () => {
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

    const seq = await lastSeq(podwright);
    assert.equal((await podwright.run(["ps"])).exitCode, 1);
    await podwright.succeed("run", "--detach");
    assert.deepEqual(instances(await podwright.pods()), before);
    await sleep(2_500);
    assert.deepEqual(instances(await podwright.pods()), before);
    const since = (await podwright.journal()).filter((entry) => entry.seq > seq);
    assert.deepEqual(actionsSince(since, seq), []);
    const flips = since.filter(
      ({ what, message }) => what === "ContainerStateChanged" && /not ready|waiting/.test(message),
    );
    assert.deepEqual(flips, [], "readiness does not flip");
  });
});

test("a container that exited while no engine ran is restarted once, as its policy says, and the others are left alone", async () => {
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
    const seq = await lastSeq(podwright);
    for (const name of names.slice(0, 3)) await podwright.kill(await podwright.firstProcess(ids.get(name) ?? ""));

    await podwright.run(["run", "--detach", "--wait", "none"]);
    const pods = await podwright.waitFor(
      "restarts",
      (all) => runs("always", "onfailure", "calm")(all) && all.some((pod) => pod.phase === "Failed"),
    );
    await sleep(1_500);
    const starts = actionsSince(await podwright.journal(), seq).filter((action) =>
      /^(?:Run|Create|Start)/.test(action),
    );
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

const outageMs = Number(process.env["PODWRIGHT_TEST_OUTAGE_MS"] ?? 8_000);

test("pods survive containerd's absence, ps answers meanwhile, nothing is started twice, what died is restarted after it", async () => {
  await withPodwright(async (podwright) => {
    const paths = await Promise.all(
      ["calm", "victim"].map((name) => podwright.manifest(`${name}.yaml`, podManifest(name, politeSleep))),
    );
    await podwright.succeed("run", "--detach", ...paths);
    const before = await podwright.pods();
    const engine = await podwright.enginePid();
    const containerd = await podwright.containerdPid();
    const commandLine = (await systemProcesses.list()).find(({ pid }) => pid === containerd)?.arguments ?? [];
    const [calm, victim] = await Promise.all(before.map((pod) => podwright.firstProcess(pod.containers[0]?.id ?? "")));
    assert.ok(calm !== undefined && victim !== undefined);
    const seq = await lastSeq(podwright);

    await podwright.kill(containerd);
    await podwright.kill(victim);
    const back = Date.now() + outageMs;
    while (Date.now() < back) {
      assert.deepEqual(
        (await podwright.pods()).map((pod) => pod.name),
        ["calm", "victim"],
      );
      await sleep(1000);
    }
    assert.ok(systemProcesses.isAlive(calm), "the pod goes on without containerd");
    await podwright.startContainerd(commandLine);

    const after = await podwright.waitFor("the victim's restart", (pods) =>
      pods.some((pod) => pod.name === "victim" && pod.ready && pod.containers[0]?.restartCount === 1),
    );
    await sleep(2_500);
    assert.deepEqual(instances(after.slice(0, 1)), instances(before.slice(0, 1)));
    assert.equal(await podwright.firstProcess(before[0]?.containers[0]?.id ?? ""), calm);
    assert.equal(await podwright.enginePid(), engine);
    const starts = actionsSince(await podwright.journal(), seq).filter((action) =>
      /^(?:Run|Create|Start)/.test(action),
    );
    assert.deepEqual(starts, ["CreateContainer victim/app", "StartContainer victim/app"]);
    await until(
      "the event stream to be back",
      async () => (await podwright.succeed("doctor")).includes(" runtime events,"),
      15_000,
    );
  });
});
