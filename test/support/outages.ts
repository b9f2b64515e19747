import assert from "node:assert/strict";
import type { JournalEntry } from "../../src/journal/entry.ts";
import { systemProcesses } from "../../src/linux/processes/processes.ts";
import type { PodView } from "../../src/server/local-api.ts";
import { podManifest, politeSleep } from "./manifests.ts";
import { type Podwright, sleep, until } from "./podwright.ts";

/** IDs and restart counts, which an outage must not change. */
export function instances(pods: readonly PodView[]): string[] {
  return pods.flatMap((pod) =>
    pod.containers.map(({ name, id, restartCount }) => `${pod.name}/${name} ${id} ${restartCount}`),
  );
}

/** Actions on the runtime after that entry, as `StartContainer web/app`. */
export function actionsSince(entries: readonly JournalEntry[], seq: number): string[] {
  return entries
    .filter((entry) => entry.seq > seq && entry.kind === "action")
    .map(({ what, pod, container = "" }) => `${what} ${pod?.name ?? ""}/${container}`);
}

/** {@link actionsSince}, but only creations and starts. */
export function startsSince(entries: readonly JournalEntry[], seq: number): string[] {
  return actionsSince(entries, seq).filter((action) =>
    /^(?:RunPodSandbox|CreateContainer|StartContainer) /.test(action),
  );
}

/** How a runtime fails and returns. */
export interface Outage {
  readonly begin: () => Promise<void>;
  readonly end: () => Promise<void>;
}

/** containerd is killed, and restarted with the same command line. */
export async function killed(podwright: Podwright): Promise<Outage> {
  const pid = await podwright.containerdPid();
  const commandLine = (await systemProcesses.list()).find((process) => process.pid === pid)?.arguments ?? [];
  return { begin: async () => podwright.kill(pid), end: async () => podwright.startContainerd(commandLine) };
}

/** containerd accepts calls without responding, and later continues. */
export async function hung(podwright: Podwright): Promise<Outage> {
  const pid = await podwright.containerdPid();
  assert.ok(pid !== undefined);
  return {
    begin: async () => void process.kill(pid, "SIGSTOP"),
    end: async () => void process.kill(pid, "SIGCONT"),
  };
}

/**
 * Runs two pods, makes the runtime fail, kills a container of one of them meanwhile, and restores the runtime: `ps`
 * always responds, the other pod is not touched, and the killed container is restarted exactly once.
 */
export async function surviveOutage(
  podwright: Podwright,
  outageOf: (podwright: Podwright) => Promise<Outage>,
  outageMs: number,
): Promise<void> {
  const paths = await Promise.all(
    ["calm", "victim"].map((name) => podwright.manifest(`${name}.yaml`, podManifest(name, politeSleep))),
  );
  await podwright.succeed("run", "--detach", ...paths);
  const before = await podwright.pods();
  const engine = await podwright.enginePid();
  const [calm, victim] = await Promise.all(before.map((pod) => podwright.firstProcess(pod.containers[0]?.id ?? "")));
  assert.ok(calm !== undefined && victim !== undefined);
  const seq = await podwright.lastSeq();

  const outage = await outageOf(podwright);
  await outage.begin();
  try {
    await podwright.kill(victim);
    for (const over = Date.now() + outageMs; Date.now() < over; await sleep(1_000)) {
      const names = (await podwright.pods()).map((pod) => pod.name);
      assert.deepEqual(names, ["calm", "victim"]);
    }
    assert.ok(systemProcesses.isAlive(calm), "the pod goes on without its runtime");
  } finally {
    await outage.end();
  }

  const after = await podwright.waitFor("the victim's restart", (pods) =>
    pods.some((pod) => pod.name === "victim" && pod.ready && pod.containers[0]?.restartCount === 1),
  );
  // Twice the relist interval: a wrong start would have happened by now.
  await sleep(2_500);
  assert.deepEqual(instances(after.slice(0, 1)), instances(before.slice(0, 1)));
  assert.equal(await podwright.firstProcess(before[0]?.containers[0]?.id ?? ""), calm);
  assert.equal(await podwright.enginePid(), engine);
  assert.deepEqual(startsSince(await podwright.journal(), seq), [
    "CreateContainer victim/app",
    "StartContainer victim/app",
  ]);
  // Not every runtime has events.
  if ((await eventStream(podwright)) !== undefined) {
    await until("events to come", async () => (await eventStream(podwright)) === "RuntimeEventsConnected", 20_000);
  }
}

/** The last journal entry about the runtime's event stream; undefined: there never was one. */
async function eventStream(podwright: Podwright): Promise<string | undefined> {
  const entries = await podwright.journal();
  return entries.findLast(({ what }) => /^RuntimeEvents(?:Connected|Lost)$/.test(what))?.what;
}
