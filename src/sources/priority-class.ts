import type { PodManifest, PodSpec } from "../api/pod.ts";
import { invalid, type FieldError } from "./field-errors.ts";

/** The classes that every cluster has, with their priorities (scheduling.SystemPriorityClasses). */
const builtIn: ReadonlyMap<string, number> = new Map([
  ["system-node-critical", 2_000_001_000],
  ["system-cluster-critical", 2_000_000_000],
]);

/**
 * The spec with the priority of its class: what the admission of an API server does (plugin Priority), for the pods of
 * `podwright run`. Not for static pods: the Go kubelet leaves theirs as the manifest has it. A priority that is given
 * stays, because a pod that an earlier version accepted runs on with it.
 */
export function withClassPriority(spec: PodSpec): PodSpec {
  const priority = spec.priority ?? builtIn.get(spec.priorityClassName ?? "");
  return priority === undefined ? spec : { ...spec, priority };
}

/** Rejects a priority that is not that of its class, as admission does. */
export function priorityErrors({ spec }: PodManifest): FieldError[] {
  const { priority, priorityClassName: name = "" } = spec;
  const ofClass = builtIn.get(name);
  if (ofClass === undefined || priority === undefined || priority === ofClass) return [];
  return [invalid(["spec", "priority"], priority, `the priority class ${name} has ${ofClass}; omit the field`)];
}

/** Without a cluster nobody says which priority another class has. */
export function priorityWarnings({ spec }: PodManifest): FieldError[] {
  const { priority, priorityClassName: name = "" } = spec;
  if (name === "" || builtIn.has(name) || priority !== undefined) return [];
  const classes = [...builtIn.keys()].join(" and ");
  const detail = `has no meaning without a cluster, which defines it: only ${classes} are known; the priority is 0, set priority instead`;
  return [{ path: ["spec", "priorityClassName"], detail }];
}
