import { containersOf, isSidecar } from "../api/all-containers.ts";
import type { Container, ResourceRequirements } from "../api/container.ts";
import type { Pod, PodSpec } from "../api/pod.ts";
import { parseList } from "./pod-totals.ts";
import { qosClass } from "./qos.ts";
import type { PodResources } from "./resource-checkpoint.ts";

/** The resources that can change while a container runs (KEP-1287). */
export const resizableResources = ["cpu", "memory"] as const;
export type ResizableResource = (typeof resizableResources)[number];

type List = ResourceRequirements["limits"];

/** A manifest's resources, in the form of the allocation record. */
export function resourcesOf(pod: Pick<Pod, "spec">): PodResources {
  const containers = containersOf(pod.spec);
  return {
    containers: new Map(containers.map(({ name, resources }) => [name, resources ?? {}])),
    pod: pod.spec.resources,
  };
}

/** The pod with these resources in place of its manifest's; containers without any keep theirs. */
export function withResources(pod: Pod, resources: PodResources | undefined): Pod {
  if (resources === undefined) return pod;
  const granted = (container: Container): Container => {
    const own = resources.containers.get(container.name);
    return own === undefined ? container : { ...container, resources: own };
  };
  const { resources: _asked, ...spec } = pod.spec;
  return {
    ...pod,
    spec: {
      ...spec,
      ...(resources.pod !== undefined && { resources: resources.pod }),
      containers: spec.containers.map(granted),
      ...(spec.initContainers && { initContainers: spec.initContainers.map(granted) }),
    },
  };
}

/** Whether the amounts are equal, in any notation. */
export function sameRequirements(a: ResourceRequirements | undefined, b: ResourceRequirements | undefined): boolean {
  return sameList(a?.limits, b?.limits) && sameList(a?.requests, b?.requests);
}

/** Whether two versions of a pod have equal resources. */
export function sameResources(a: Pick<Pod, "spec">, b: Pick<Pod, "spec">): boolean {
  const [before, after] = [resourcesOf(a), resourcesOf(b)];
  return (
    sameRequirements(before.pod, after.pod) &&
    [...after.containers].every(([name, own]) => sameRequirements(before.containers.get(name) ?? own, own))
  );
}

function sameList(a: List, b: List): boolean {
  const [first, second] = [parseList(a), parseList(b)];
  return first.size === second.size && [...first].every(([name, amount]) => second.get(name)?.compare(amount) === 0);
}

/** A spec without its resizable resources: equal for two versions of a pod that only a resize distinguishes. */
export function withoutResizable(spec: PodSpec): PodSpec {
  const fixed = ({ resources, ...container }: Container): Container => ({ ...container, ...fixedResources(resources) });
  const { resources, ...rest } = spec;
  return {
    ...rest,
    ...fixedResources(resources),
    containers: spec.containers.map(fixed),
    ...(spec.initContainers && { initContainers: spec.initContainers.map(fixed) }),
  };
}

function fixedResources(resources: ResourceRequirements | undefined): { readonly resources?: ResourceRequirements } {
  if (resources === undefined) return {};
  const { limits: limitList, requests: requestList, ...rest } = resources;
  const [limits, requests] = [fixedList(limitList), fixedList(requestList)];
  const kept = { ...rest, ...(limits && { limits }), ...(requests && { requests }) };
  return Object.keys(kept).length === 0 ? {} : { resources: kept };
}

function fixedList(list: List): List {
  const entries = Object.entries(list ?? {}).filter(([name]) => !isResizable(name));
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

function isResizable(name: string): boolean {
  return resizableResources.some((resizable) => resizable === name);
}

/** Why a field cannot change while the pod runs. */
export interface ResizeProblem {
  readonly path: readonly (string | number)[];
  readonly detail: string;
}

/**
 * The parts of a resource change that no resize can apply (upstream: ValidatePodResize). Expects defaults in both.
 * Empty when resources are equal.
 */
export function resizeProblems(before: Pick<Pod, "spec">, after: Pick<Pod, "spec">): ResizeProblem[] {
  if (sameResources(before, after)) return [];
  const problems: ResizeProblem[] = [];
  if (qosClass(before) !== qosClass(after)) {
    const detail = `Pod QOS Class may not change as a result of resizing: ${qosClass(before)} to ${qosClass(after)}`;
    problems.push({ path: ["spec"], detail });
  }
  if (before.spec.resources !== undefined && after.spec.resources === undefined) {
    problems.push({ path: ["spec", "resources"], detail: "pod-level resources cannot be removed" });
  } else problems.push(...listProblems(["spec", "resources"], before.spec.resources, after.spec.resources));
  for (const kind of ["initContainers", "containers"] as const) {
    for (const [index, container] of (after.spec[kind] ?? []).entries()) {
      const path = ["spec", kind, index, "resources"];
      const old = before.spec[kind]?.find(({ name }) => name === container.name);
      if (old === undefined || sameRequirements(old.resources, container.resources)) continue;
      problems.push(...listProblems(path, old.resources, container.resources));
      const restarts = container.resizePolicy?.some(({ restartPolicy }) => restartPolicy === "RestartContainer");
      if (kind === "initContainers" && !isSidecar(container) && restarts === true) {
        const detail = "init containers with a resize policy of RestartContainer cannot be resized";
        problems.push({ path, detail });
      }
    }
  }
  return problems;
}

function* listProblems(
  path: readonly (string | number)[],
  before: ResourceRequirements | undefined,
  after: ResourceRequirements | undefined,
): Iterable<ResizeProblem> {
  for (const kind of ["requests", "limits"] as const) {
    const [old, now] = [parseList(before?.[kind]), parseList(after?.[kind])];
    for (const name of new Set([...old.keys(), ...now.keys()])) {
      const here = [...path, kind, name];
      const [from, to] = [old.get(name), now.get(name)];
      if (!isResizable(name) && (to === undefined || from?.compare(to) !== 0)) {
        yield { path: here, detail: "only cpu and memory resources are mutable" };
      } else if (to === undefined) {
        yield { path: here, detail: `resource ${kind} cannot be removed` };
      }
    }
  }
}
