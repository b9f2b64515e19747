import type { Pod } from "../../api/pod.ts";
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
  return required(pod, handlerOf(pod, objects));
}

/** @throws ContainerConfigError, in upstream's words, when the pod's handler has no user namespaces */
export function requireUserNamespaces(pod: Pod, { handler, isKnown, userNamespaces }: PodFeatures): void {
  const name = required(pod, handler);
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

function required({ spec }: Pod, handler: string | undefined): string {
  if (handler !== undefined) return handler;
  throw new ContainerConfigError(`runtimeclass.node.k8s.io ${JSON.stringify(spec.runtimeClassName)} not found`);
}
