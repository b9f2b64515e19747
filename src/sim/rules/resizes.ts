import type { Container } from "../../api/container.ts";
import type { Pod } from "../../api/pod.ts";
import { podCgroupResources } from "../../resources/pod-resources.ts";
import { parseQuantity } from "../../resources/quantity.ts";
import type { SimContainer } from "../world-model.ts";
import type { Rule, RuleMaker } from "./rule.ts";

const cgroupSettings = { cpuQuota: true, cpuPeriodMicroseconds: 100_000n, podPidsLimit: -1, hugePageSizes: [] };

/** Nothing is restarted for a resize that asks for no restart, and in the end what runs has what its manifest asks for. */
export const resizes: RuleMaker = ({ world, node, pods }, broken): Rule => {
  const runningOf = (pod: Pod): Running[] =>
    pod.spec.containers.flatMap((container) => {
      const instance = [...world.containers.values()].find(({ state, config }) => {
        const { labels, metadata } = config;
        const same = labels["io.kubernetes.pod.uid"] === pod.metadata.uid && metadata?.name === container.name;
        return state === "running" && same;
      });
      return instance === undefined ? [] : [{ container, instance }];
    });
  const cgroupProblems = (pod: Pod): string[] => {
    const wanted = podCgroupResources(pod, cgroupSettings);
    const found = [...node.cgroups.applied].find(([path]) => path.endsWith(`/pod${pod.metadata.uid}`))?.[1];
    return (["cpuShares", "cpuQuotaMicroseconds", "memoryLimitBytes"] as const)
      .filter((name) => wanted[name] !== undefined && wanted[name] !== found?.[name])
      .map((name) => `the cgroup of ${pod.metadata.uid} has ${name} ${found?.[name]}, not ${wanted[name]}`);
  };
  return {
    entry: ({ kind, what, pod, container, cause }) => {
      if (kind !== "action" || what !== "StopContainer" || cause?.code !== "ResizeStarted") return;
      const spec = pods.get(pod?.uid ?? "")?.spec.containers.find(({ name }) => name === container);
      const restarts = spec?.resizePolicy?.some(({ restartPolicy }) => restartPolicy === "RestartContainer");
      if (restarts !== true) broken("no restart for a resize", `${pod?.uid}/${container} was stopped for one`);
    },
    disagreements: () =>
      [...node.desired.values()].flatMap((pod) => {
        const running = runningOf(pod);
        if (running.length === 0) return [];
        return [...running.flatMap((each) => containerProblems(pod.metadata.uid, each)), ...cgroupProblems(pod)];
      }),
  };
};

interface Running {
  readonly container: Container;
  readonly instance: SimContainer;
}

/** By the formulas of the kernel's interface, without those of podwright. */
function containerProblems(uid: string, { container, instance }: Running): string[] {
  const { requests, limits } = container.resources ?? {};
  const has = instance.resources ?? instance.config.linux?.resources;
  const problem = (what: string, is: bigint | undefined, should: bigint): string[] =>
    is === should ? [] : [`${uid}/${container.name} has ${what} ${is}, not ${should}`];
  const cpu = requests?.["cpu"];
  const cpuLimit = limits?.["cpu"];
  const memory = limits?.["memory"];
  return [
    ...(cpu === undefined ? [] : problem("shares", has?.cpuShares, (parseQuantity(cpu).milliValue() * 1024n) / 1000n)),
    ...(cpuLimit === undefined ? [] : problem("quota", has?.cpuQuota, parseQuantity(cpuLimit).milliValue() * 100n)),
    ...(memory === undefined ? [] : problem("memory", has?.memoryLimitInBytes, parseQuantity(memory).value())),
  ];
}
