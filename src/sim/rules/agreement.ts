import type { Pod } from "../../api/pod.ts";
import { parseBehaviour, parseHook } from "../behaviour.ts";
import { mayBeKilled } from "../life/pod-probes.ts";
import { attemptOf, type SimContainer, type SimSandbox } from "../world-model.ts";
import type { Rule, RuleMaker } from "./rule.ts";

/** Longer than it takes to be noticed. */
const collectedWithinMs = 30_000;
const directories = ["/var/lib/kubelet/pods", "/var/log/pods", "/var/log/containers"];

/** Once nothing goes wrong any more, what is wanted runs and nothing else is left (design invariant 7). */
export const agreement: RuleMaker = ({ clock, world, node, pods }, broken): Rule => {
  /** Pods of which a container has ended or that were stopped: under Never they are over, rightly. */
  const everEnded = new Set<string>();
  const rejected = new Set<string>();
  const exitedMs = new WeakMap<SimContainer, number>();

  async function leftovers(): Promise<string[]> {
    const problems: string[] = [];
    for (const { id, config } of world.sandboxes.values()) {
      const uid = config.metadata?.uid ?? "";
      if (!node.desired.has(uid)) problems.push(`sandbox ${id} of unwanted pod ${uid} is still there`);
    }
    for (const [path] of node.cgroups.applied) {
      const uid = /\/pod(uid-\d+)$/.exec(path)?.[1];
      if (uid !== undefined && !node.desired.has(uid)) problems.push(`cgroup ${path} is still there`);
    }
    for (const directory of directories) {
      for (const { name } of await node.files.list(directory)) {
        const uid = /uid-\d+/.exec(name)?.[0];
        if (uid !== undefined && !node.desired.has(uid)) problems.push(`${directory}/${name} is still there`);
      }
    }
    for (const { view } of node.pods()) {
      if (!node.desired.has(view.ref.uid)) problems.push(`podwright still works on pod ${view.ref.uid}`);
    }
    return problems;
  }

  function disagreementsOf(pod: Pod): string[] {
    const { uid } = pod.metadata;
    return pod.spec.containers.flatMap((container) => {
      const { exitAfterMs, unstartable } = parseBehaviour(container.command ?? []);
      const all = instances(uid, container.name);
      const running = all.filter((instance) => instance.state === "running").length;
      const isLive = all.some((instance) => instance.state === "unknown");
      if (isLive) return [`${uid}/${container.name} is still unknown to the runtime`];
      if (pod.spec.activeDeadlineSeconds !== undefined) {
        return running === 0 ? [] : [`${uid}/${container.name} runs after the pod's deadline`];
      }
      const hookFails = parseHook(container.lifecycle?.postStart?.exec?.command ?? [])?.exitCode === 1;
      const canRun = !unstartable && !hookFails && !mayBeKilled(container) && hasAll(pod, container);
      const policy = container.restartPolicy ?? pod.spec.restartPolicy ?? "Always";
      const mayRest = policy !== "Always" && everEnded.has(uid);
      const excused = mayRest || rejected.has(uid) || !canInitialize(pod) || isWaiting(pod);
      if (exitAfterMs === undefined && canRun && !excused && running !== 1) {
        return [`${uid}/${container.name} should run, and ${running} instances do`];
      }
      const longDead = all.filter((instance) => instance.state === "exited" && isLongDead(instance));
      return longDead.length > 4 ? [`${uid}/${container.name} has ${longDead.length} dead instances`] : [];
    });
  }

  /** What it takes to be made is there. */
  function hasAll(pod: Pod, { image = "", imagePullPolicy, env }: Pod["spec"]["containers"][number]): boolean {
    const needsLate =
      (pod.spec.volumes ?? []).some(({ name }) => name === "late") ||
      (env ?? []).some(({ valueFrom }) => valueFrom?.configMapKeyRef?.name === "late");
    const mayPull = imagePullPolicy !== "Never" || world.images.has(image);
    return (node.objects.lateIsThere || !needsLate) && mayPull && !image.startsWith("missing");
  }

  /** Behind another pod of its name, which is wanted too. */
  function isWaiting({ metadata }: Pod): boolean {
    return [...node.desired.values()].some((other) => {
      return other.metadata.name === metadata.name && other.metadata.uid !== metadata.uid;
    });
  }

  /** Whether every init container ends well; sidecars only have to start. */
  function canInitialize(pod: Pod): boolean {
    return (pod.spec.initContainers ?? []).every((init) => {
      if (init.restartPolicy !== "Always") return parseBehaviour(init.command ?? []).exitCode === 0;
      return !mayBeKilled(init) && init.startupProbe === undefined && hookOf(init) !== 1;
    });
  }

  function isLongDead(container: SimContainer): boolean {
    return (exitedMs.get(container) ?? clock.nowMs) + collectedWithinMs < clock.nowMs;
  }

  /** Of a pod's dead and empty sandboxes only the newest stays. */
  function staleSandboxes(uid: string): string[] {
    const sandboxes = [...world.sandboxes.values()].filter(({ config }) => config.metadata?.uid === uid);
    const newest = Math.max(...sandboxes.map(attemptOf));
    const used = new Set([...world.containers.values()].map(({ sandboxId }) => sandboxId));
    const stale = (sandbox: SimSandbox): boolean =>
      !sandbox.ready && !used.has(sandbox.id) && attemptOf(sandbox) !== newest;
    const ready = sandboxes.filter((sandbox) => sandbox.ready).length;
    return [
      ...sandboxes.filter(stale).map(({ id }) => `sandbox ${id} of ${uid} is dead, empty and not the newest`),
      ...(ready > 1 ? [`${uid} has ${ready} ready sandboxes`] : []),
    ];
  }

  function instances(uid: string, name: string): SimContainer[] {
    return [...world.containers.values()].filter(({ config }) => {
      return config.labels["io.kubernetes.pod.uid"] === uid && config.metadata?.name === name;
    });
  }

  const forget = (uid: string): void => {
    everEnded.delete(uid);
    rejected.delete(uid);
  };

  return {
    change: ({ type, container, podUid }) => {
      if (type !== "exited" || container === undefined) return;
      exitedMs.set(container, clock.nowMs);
      everEnded.add(podUid);
    },
    entry: ({ what, pod }) => {
      if (what === "NodePorts" && pod !== undefined) rejected.add(pod.uid);
      if (what === "PodTerminating" && pod !== undefined) everEnded.add(pod.uid);
    },
    reborn: forget,
    tampered: forget,
    disagreements: async () => {
      const own = [...node.desired.values()].flatMap((pod) => [
        ...disagreementsOf(pod),
        ...staleSandboxes(pod.metadata.uid),
      ]);
      return [...(await leftovers()), ...own];
    },
    atRest: async () => {
      for (const pod of pods.values()) {
        for (const { name } of pod.spec.containers) await judgeLogs(pod, name);
      }
    },
  };

  /** A running container has its log where it says, and no more rotated ones than there may be. */
  async function judgeLogs({ metadata: { namespace, name, uid } }: Pod, container: string): Promise<void> {
    const running = world.running(uid, container);
    if (running === undefined) return;
    const directory = `/var/log/pods/${namespace}_${name}_${uid}/${container}`;
    if ((await node.files.stat(running.logPath)) === undefined) {
      broken("logs are kept", `${uid}/${container} writes to no file`);
    }
    const own = `${attemptOf(running)}.log`;
    const rotated = (await node.files.list(directory)).filter((entry) => entry.name.startsWith(own));
    if (rotated.length > maxLogFiles + 1) broken("logs are rotated", `${uid}/${container} has ${rotated.length} logs`);
  }
};

const maxLogFiles = 5;

function hookOf({ lifecycle }: Pod["spec"]["containers"][number]): number | undefined {
  return parseHook(lifecycle?.postStart?.exec?.command ?? [])?.exitCode;
}
