import type { Container } from "../../api/container.ts";
import type { Pod } from "../../api/pod.ts";
import type { VolumeMount } from "../../api/volume.ts";
import type { RuntimeHandlerInfo } from "../../runtime-service/features.ts";
import { ContainerConfigError } from "./container-config-error.ts";
import type { ObjectLookup } from "./environment.ts";

/** What the runtime can do for a pod beyond what every runtime can. It depends on the pod's runtime handler. */
export interface PodFeatures extends Omit<RuntimeHandlerInfo, "name"> {
  /** The handler's name, empty for the default one; undefined: the pod's RuntimeClass is not found. */
  readonly handler: string | undefined;
  /** False when the runtime lists handlers, and not this one. */
  readonly isKnown: boolean;
}

/** To be called for each decision: the runtime may be replaced, and RuntimeClasses change. */
export type FeaturesOf = (pod: Pod) => PodFeatures;

/**
 * What the pod's handler can do. Runtimes that do not list their handlers cannot do what came after that. Pure.
 * @param handlers as the runtime lists them
 */
export function podFeatures(
  pod: Pod,
  objects: Pick<ObjectLookup, "runtimeHandler">,
  handlers: readonly RuntimeHandlerInfo[],
): PodFeatures {
  const handler = handlerOf(pod, objects);
  const found = handlers.find(({ name }) => name === handler);
  return {
    handler,
    isKnown: found !== undefined || handlers.length === 0,
    recursiveReadOnlyMounts: found?.recursiveReadOnlyMounts ?? false,
    userNamespaces: found?.userNamespaces ?? false,
  };
}

/** The name of the pod's runtime handler. @throws ContainerConfigError when the pod's RuntimeClass does not exist */
export function runtimeHandler(pod: Pod, objects: Pick<ObjectLookup, "runtimeHandler">): string {
  return requireHandler(pod, { handler: handlerOf(pod, objects) });
}

/**
 * The name of the pod's handler, for what depends on it: an unknown handler has no features.
 * @throws ContainerConfigError, in upstream's words, while the pod's RuntimeClass is not known
 */
export function requireHandler({ spec }: Pod, { handler }: Pick<PodFeatures, "handler">): string {
  if (handler !== undefined) return handler;
  throw new ContainerConfigError(`runtimeclass.node.k8s.io ${JSON.stringify(spec.runtimeClassName)} not found`);
}

/** Whether a start must know the pod's handler. A running pod's other containers start without its RuntimeClass. */
export function dependsOnHandler({ spec }: Pod, { volumeMounts = [] }: Container): boolean {
  return spec.hostUsers === false || volumeMounts.some(mayBeRecursivelyReadOnly);
}

/** Whether a mount is recursively read-only, or no mount at all, depends on the handler. */
export function mayBeRecursivelyReadOnly({ recursiveReadOnly = "Disabled" }: VolumeMount): boolean {
  return recursiveReadOnly !== "Disabled";
}

/** @throws ContainerConfigError, in upstream's words, when the pod's handler has no user namespaces */
export function requireUserNamespaces(pod: Pod, { handler, isKnown, userNamespaces }: PodFeatures): void {
  const name = requireHandler(pod, { handler });
  if (userNamespaces) return;
  const subject = name === "" ? "runtime" : `RuntimeClass handler ${JSON.stringify(name)}`;
  const unknown = isKnown ? "" : `: the handler ${JSON.stringify(name)} is not known`;
  throw new ContainerConfigError(
    `can't set \`spec.hostUsers: false\`, ${subject} does not support user namespaces${unknown}`,
  );
}

function handlerOf({ spec }: Pod, objects: Pick<ObjectLookup, "runtimeHandler">): string | undefined {
  return spec.runtimeClassName ? objects.runtimeHandler?.(spec.runtimeClassName) : "";
}
