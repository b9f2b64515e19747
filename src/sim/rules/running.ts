import type { Container } from "../../api/container.ts";
import type { EntryName } from "../../journal/vocabulary.ts";
import type { Pod } from "../../api/pod.ts";
import { mayBeKilled } from "../life/pod-probes.ts";
import { nameOf, type SimContainer } from "../world-model.ts";
import type { Rule, RuleMaker } from "./rule.ts";
import { lastingContainers } from "../../api/all-containers.ts";

/** How long pods without changes are watched. */
const quietMs = 120_000;
/** Actions that affect a pod. */
const felt: ReadonlySet<EntryName> = new Set<EntryName>([
  ...(["RunPodSandbox", "StopPodSandbox", "CreateContainer", "StartContainer", "StopContainer"] as const),
  ...([
    "MountVolume",
    "MapVolume",
    "UnmountVolumes",
    "UpdateVolume",
    "UpdateContainerResources",
    "UpdatePodCgroup",
  ] as const),
]);

/** What runs is what is desired, and a pod in its desired state is left alone. */
export const running: RuleMaker = ({ clock, world, node }, broken): Rule => {
  const instancesOf = (uid: string): SimContainer[] =>
    [...world.containers.values()].filter(({ state, config }) => {
      return state === "running" && config.labels["io.kubernetes.pod.uid"] === uid;
    });

  function problemsOf({ metadata: { uid }, spec }: Pod, instance: SimContainer): string[] {
    const where = `${uid}/${nameOf(instance)}`;
    const wanted = spec.containers.find(({ name }) => name === nameOf(instance));
    const has = instance.config.image?.image ?? "";
    const hasAddress = spec.hostNetwork === true || world.sandboxes.get(instance.sandboxId)?.ip !== "";
    return [
      ...(wanted === undefined || has === imageId(wanted) ? [] : [`${where} runs ${has}, not ${imageId(wanted)}`]),
      ...(hasAddress ? [] : [`${where} runs in a pod without an address`]),
    ];
  }

  function isSteady({ metadata: { uid }, spec }: Pod): boolean {
    if (spec.activeDeadlineSeconds !== undefined) return false;
    const instances = instancesOf(uid);
    return lastingContainers(spec).every((container) => {
      const instance = instances.find((one) => nameOf(one) === container.name);
      const isOld = instance !== undefined && instance.startedMs + quietMs + 60_000 < clock.nowMs;
      return isOld && instance.behaviour.exitAfterMs === undefined && !mayBeKilled(container);
    });
  }

  return {
    disagreements: () =>
      [...node.desired.values()].flatMap((pod) =>
        instancesOf(pod.metadata.uid).flatMap((each) => problemsOf(pod, each)),
      ),
    atRest: () => {
      const resized = new Set<string | undefined>();
      // An expiring token is renewed, and written to its volume.
      const renewed = new Set<string | undefined>();
      for (const { what, pod, atMs } of node.entries) {
        if (what === "ResizeStarted" && atMs > clock.nowMs - quietMs - 60_000) resized.add(pod?.uid);
        if (what === "RequestToken" && atMs > clock.nowMs - quietMs - 60_000) renewed.add(pod?.uid);
      }
      const steady = new Set<string>([...node.desired.values()].filter(isSteady).map(({ metadata }) => metadata.uid));
      for (const { kind, what, pod, message, atMs } of node.entries.toReversed()) {
        if (atMs < clock.nowMs - quietMs) break;
        const isAbout = pod !== undefined && steady.has(pod.uid) && !resized.has(pod.uid);
        if (kind !== "action" || !isAbout || !felt.has(what)) continue;
        if (what === "UpdateVolume" && renewed.has(pod.uid)) continue;
        broken("running pods are left alone", `${what} of ${pod.uid}: ${message}`);
        break;
      }
    },
  };
};

/** The simulated runtime's ID of the image. */
function imageId({ image = "" }: Container): string {
  return `sha256:${image}${image.includes(":") ? "" : ":latest"}`;
}
