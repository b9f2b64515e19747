import assert from "node:assert/strict";
import type { Pod } from "../../src/api/pod.ts";
import { EngineClient } from "../../src/cli/engine-client.ts";
import { podView } from "../../src/engine/pod-view.ts";
import type { JournalEntry } from "../../src/journal/entry.ts";
import { unixTransport } from "../../src/linux/http/unix-client.ts";
import type { ContainerView, PodView } from "../../src/server/local-api.ts";
import { SimClock } from "../../src/sim/clock.ts";
import { SimNode } from "../../src/sim/life/node.ts";
import { SimRandom } from "../../src/sim/random.ts";
import { RuntimeWorld } from "../../src/sim/runtime-world.ts";
import { type Podwright, sleep, until } from "./podwright.ts";
import { changeAfterMs, drawPlannedPod, lookAfterMs, type PlannedPod, realManifest } from "./workload-plan.ts";

/** Pods per batch: a machine with two cores starts them within a few seconds. */
const batchSize = 20;
/** Maximum delay of a loaded machine. A machine that is ahead of the simulator never matches. */
const latenessMs = 30_000;

/**
 * Runs random pods for a minute on a real containerd and, with the same plan, in the simulator. The results have to be
 * equal: phase, states, reasons, exit codes, restart counts, readiness.
 */
export async function compareWorlds(podwright: Podwright, seed: number, count: number): Promise<void> {
  const random = new SimRandom(seed);
  const differences: string[] = [];
  for (let batch = 0; batch * batchSize < count; batch++) {
    const size = Math.min(batchSize, count - batch * batchSize);
    const planned = Array.from({ length: size }, (_, index) => drawPlannedPod(`p${batch}-${index}`, random.fork()));
    const simulated = await liveSimulated(planned, random.fork());
    const { ends: real, histories } = await liveReally(podwright, planned, simulated);
    for (const { first, change } of planned) {
      const { name } = first.metadata;
      const [was, modelled] = [real.get(name), endOf(simulated, name)];
      if (was === modelled) continue;
      const spec = JSON.stringify(typeof change === "object" ? change.replacedBy.spec : first.spec);
      differences.push(`${name}: real ${was}\n  simulated ${modelled}\n  ${spec}\n${histories.get(name)}`);
    }
  }
  assert.deepEqual(differences, [], `seed ${seed}: ${differences.join("\n")}`);
}

interface RealLives {
  /** The result of each pod, by name; undefined: it is gone. */
  readonly ends: ReadonlyMap<string, string | undefined>;
  /** For each pod with an unexpected result: its journal, an entry per line. */
  readonly histories: ReadonlyMap<string, string>;
}

/** The result of each pod. A loaded machine is late, so each pod is polled until it is as expected, for a while. */
async function liveReally(
  podwright: Podwright,
  planned: readonly PlannedPod[],
  expected: readonly PodView[],
): Promise<RealLives> {
  const { engineSocket, stateDirectory } = podwright.layout;
  const client = new EngineClient(unixTransport(engineSocket), stateDirectory);
  const apply = async (pods: readonly Pod[]): Promise<void> => {
    await client.apply({ pods: pods.map(realManifest), configMaps: [], secrets: [] });
  };
  const began = Date.now();
  await apply(planned.map(({ first }) => first));
  await sleep(began + changeAfterMs - Date.now());
  await Promise.all(
    planned.map(async ({ first, change }) => {
      if (change === "goes") await client.stop(first.metadata.name, undefined);
      else if (change !== "stays") await apply([change.replacedBy]);
    }),
  );
  await sleep(began + lookAfterMs - Date.now());
  const names = planned.map(({ first }) => first.metadata.name);
  const ends = new Map<string, string | undefined>();
  const unlike = new Set(names);
  for (const endMs = began + lookAfterMs + latenessMs; unlike.size > 0 && Date.now() < endMs; await sleep(500)) {
    const pods = await client.pods();
    for (const name of unlike) {
      ends.set(name, endOf(pods, name));
      if (ends.get(name) === endOf(expected, name)) unlike.delete(name);
    }
  }
  const histories = new Map<string, string>();
  for (const name of unlike) histories.set(name, history(name, began, await client.entries({})));
  const left = async (): Promise<PodView[]> => (await client.pods()).filter(({ name }) => names.includes(name));
  await Promise.all((await left()).map(async ({ name }) => client.stop(name, 0)));
  await until("the pods of a batch to be gone", async () => (await left()).length === 0, 60_000);
  return { ends, histories };
}

function history(name: string, began: number, entries: readonly JournalEntry[]): string {
  return entries
    .filter(({ pod }) => pod?.name === name)
    .map(
      ({ time, kind, what, container = "", message }) =>
        `    ${time - began} ms ${kind} ${what} ${container} ${message}`,
    )
    .join("\n");
}

async function liveSimulated(planned: readonly PlannedPod[], random: SimRandom): Promise<PodView[]> {
  const clock = new SimClock(1_700_000_000_000);
  const world = new RuntimeWorld(clock);
  world.images.add("busybox:latest");
  const node = new SimNode({ clock, world, random });
  node.start();
  for (const { first } of planned) node.add(first);
  await clock.run(changeAfterMs);
  for (const { first, change } of planned) {
    if (change === "stays") continue;
    node.remove(first.metadata.uid);
    if (change !== "goes") node.add(change.replacedBy);
  }
  await clock.run(lookAfterMs);
  const context = {
    nodeName: "sim",
    podLogsRoot: "/var/log/pods",
    wallOffsetMs: 0,
    served: () => [],
    holdout: () => undefined,
    ignored: new Map(),
  };
  const views = node.pods().flatMap((pod) => podView(pod, context) ?? []);
  node.kill();
  return views;
}

/** Temporary waiting reasons, and the ones that they alternate with. */
const momentary: ReadonlyMap<string, string> = new Map([
  ["ErrImagePull", "ImagePullBackOff"],
  ["PostStartHookError", "CrashLoopBackOff"],
]);

/** The result of a pod, without details that vary; undefined: it is gone. */
function endOf(pods: readonly PodView[], name: string): string | undefined {
  const pod = pods.find((candidate) => candidate.name === name);
  if (pod === undefined) return undefined;
  const { phase, reason, state, ready, containers, initContainers } = pod;
  const ends = [...initContainers, ...containers].map(containerEnd);
  return JSON.stringify({ phase, reason, state, ready, containers: ends });
}

function containerEnd({ name, state, reason, exitCode, ready, restartCount }: ContainerView): unknown {
  const steady = momentary.get(reason) ?? reason;
  return { name, state, reason: steady, exitCode, ready, restartCount };
}
