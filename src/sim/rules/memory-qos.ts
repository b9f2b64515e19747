import type { Container } from "../../api/container.ts";
import type { Pod } from "../../api/pod.ts";
import { podRequests } from "../../resources/pod-totals.ts";
import { parseQuantity } from "../../resources/quantity.ts";
import { qosClass, type QosClass } from "../../resources/qos.ts";
import type { Rule, RuleMaker } from "./rule.ts";

/**
 * With MemoryQoS the kernel protects what containers and pods request, and throttles containers before their limits.
 * Reckoned from the manifests, because the values of a cgroup that was changed in between may be left behind.
 */
export const memoryQos: RuleMaker = ({ node, world }): Rule => {
  const { memoryQos: wanted } = node.config.node.resources;

  /** memory.min, memory.low, memory.high. */
  function valuesOf(pod: Pod, { resources }: Container): readonly string[] {
    const amount = (value: string | number = 0): number => Number(parseQuantity(String(value)).value());
    const request = amount(resources?.requests?.["memory"]);
    const limit = amount(resources?.limits?.["memory"]);
    const isGuaranteed = qosClass(pod) === "Guaranteed";
    const most = limit > 0 ? limit : Number(wanted?.allocatableBytes);
    const share = Math.round((wanted?.throttlingFactor ?? 1) * 100);
    const pages = Math.floor((request * (100 - share) + most * share) / 100 / 4096);
    const throttles = limit !== request && pages * 4096 > request;
    return [
      String(isGuaranteed ? request : 0),
      String(isGuaranteed ? 0 : request),
      throttles ? String(pages * 4096) : "max",
    ];
  }

  function containerProblems(pod: Pod): string[] {
    const { uid } = pod.metadata;
    return pod.spec.containers.flatMap((container) => {
      const unified = world.running(uid, container.name)?.resources?.unified;
      if (unified === undefined) return [];
      const has = ["memory.min", "memory.low", "memory.high"].map((name) => unified[name] ?? "");
      const should = valuesOf(pod, container);
      return has.join() === should.join() ? [] : [`${uid}/${container.name} has ${has.join()}, not ${should.join()}`];
    });
  }

  const requestOf = (pod: Pod): number => Number(podRequests(pod).get("memory")?.value() ?? 0n);

  function cgroupProblems(pods: readonly Pod[]): string[] {
    const of = (...classes: readonly QosClass[]): number =>
      pods.filter((pod) => classes.includes(qosClass(pod))).reduce((sum, pod) => sum + requestOf(pod), 0);
    const problem = (path: string, name: "memoryMinBytes" | "memoryLowBytes", bytes: number): string[] => {
      const has = node.cgroups.applied.get(path)?.[name] ?? 0;
      return has === bytes ? [] : [`${path} has ${name} ${has}, not ${bytes}`];
    };
    const own = pods.flatMap((pod) => {
      const name = qosClass(pod) === "Guaranteed" ? "memoryMinBytes" : "memoryLowBytes";
      const path = [...node.cgroups.applied.keys()].find((each) => each.endsWith(`/pod${pod.metadata.uid}`));
      return path === undefined ? [] : problem(path, name, requestOf(pod));
    });
    return [
      ...own,
      ...problem("/kubepods", "memoryMinBytes", of("Guaranteed", "Burstable")),
      ...problem("/kubepods/burstable", "memoryLowBytes", of("Burstable")),
    ];
  }

  return {
    disagreements: () => {
      if (wanted === undefined) return [];
      const known = node.pods();
      const hasCgroup = ({ metadata }: Pod): boolean =>
        [...node.cgroups.applied.keys()].some((path) => path.endsWith(`/pod${metadata.uid}`));
      const pods = [...node.desired.values()].filter(hasCgroup);
      const waits = (pod: Pod): boolean =>
        known.some(({ view }) => view.ref.uid === pod.metadata.uid && view.resize?.pending !== undefined);
      const settled = pods.filter((pod) => !waits(pod));
      return [...settled.flatMap(containerProblems), ...(settled.length === pods.length ? cgroupProblems(pods) : [])];
    },
  };
};
