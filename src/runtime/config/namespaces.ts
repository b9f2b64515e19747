import type { Pod } from "../../api/pod.ts";
import {
  type NamespaceOptionSchema,
  NamespaceMode,
  type UserNamespaceSchema,
} from "../../ports/gen/runtime/v1/api_pb.js";
import type { MessageInit } from "../../ports/message-init.ts";
import { ContainerConfigError } from "./container-config-error.ts";
import type { IdRange } from "./id-ranges.ts";

export type UserNamespace = MessageInit<typeof UserNamespaceSchema>;

interface UserNamespaceOption {
  readonly usernsOptions?:
    | {
        readonly mode?: NamespaceMode;
        readonly uids?: readonly { readonly hostId?: number; readonly length?: number }[];
      }
    | undefined;
}

/** The user namespace's IDs; undefined: the node's own. */
export function userIdsOf(options: UserNamespaceOption | undefined): IdRange | undefined {
  const { mode, uids: [only] = [] } = options?.usernsOptions ?? {};
  if (mode !== NamespaceMode.POD || only === undefined) return undefined;
  return { first: only.hostId ?? 0, length: only.length ?? 0 };
}

/**
 * Which namespaces of the pod and of the node its containers use. Each container has its own process namespace unless
 * shared.
 * @param userNamespace the range of a pod with `hostUsers: false`
 * @throws ContainerConfigError when the pod requires a user namespace and has none
 */
export function namespaceOptions(
  pod: Pod,
  userNamespace: UserNamespace | undefined,
): MessageInit<typeof NamespaceOptionSchema> {
  const { hostIPC, hostNetwork, hostPID, hostUsers, shareProcessNamespace } = pod.spec;
  if (hostUsers === false && userNamespace === undefined) {
    // Running it as the node's users instead would give the pod rights that it opted out of.
    throw new ContainerConfigError(
      "the pod asks for a user namespace (hostUsers: false), which this node does not support",
    );
  }
  return {
    network: hostNetwork ? NamespaceMode.NODE : NamespaceMode.POD,
    ipc: hostIPC ? NamespaceMode.NODE : NamespaceMode.POD,
    pid: hostPID ? NamespaceMode.NODE : shareProcessNamespace ? NamespaceMode.POD : NamespaceMode.CONTAINER,
    usernsOptions: hostUsers === false && userNamespace !== undefined ? userNamespace : { mode: NamespaceMode.NODE },
  };
}
