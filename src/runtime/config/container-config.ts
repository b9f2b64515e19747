import type { Container } from "../../api/container.ts";
import type { Pod } from "../../api/pod.ts";
import type { ContainerId } from "../../base/ids.ts";
import {
  type ContainerConfigSchema,
  type DeviceSchema,
  type MountSchema,
  NamespaceMode,
} from "../../ports/gen/runtime/v1/api_pb.js";
import type { MessageInit } from "../../ports/message-init.ts";
import type { ContainerEdits } from "../../resources/container-edits.ts";
import { containerResources, type ResourceSettings } from "../../resources/container-resources.ts";
import type { EnvironmentVariable } from "./environment.ts";
import { goJson } from "../../base/go-json.ts";
import { containerHash } from "./hash.ts";
import { hostsPath } from "./hosts-file.ts";
import { Annotation, Label } from "./labels.ts";
import { containerLogPath } from "../layout/log-paths.ts";
import type { UserNamespace } from "./namespaces.ts";
import { containerSecurityContext, type ImageUser, type SecurityContextSettings } from "./security-context.ts";
import { stopSignalOf } from "./stop-signal.ts";

export type ContainerConfig = MessageInit<typeof ContainerConfigSchema>;
export type { ImageUser } from "./security-context.ts";
export type Mount = MessageInit<typeof MountSchema>;

/** The inputs of one container instance beside its pod's spec. */
export interface ContainerInputs {
  /** 0 for the first instance. */
  readonly restartCount: number;
  /** The image as the runtime resolved it (`sha256:…`). */
  readonly imageRef: string;
  readonly imageUser: ImageUser;
  /** From makeEnvironment. */
  readonly environment: readonly EnvironmentVariable[];
  /** From expandCommand. */
  readonly command: readonly string[];
  readonly args: readonly string[];
  /** The edits of the node's resource managers. */
  readonly edits: ContainerEdits;
  /** Mounts of the pod's volumes, in the order of the spec. */
  readonly volumeMounts: readonly Mount[];
  /** From volumeDevices. */
  readonly devices?: readonly MessageInit<typeof DeviceSchema>[];
  /** The pod's hosts file on the node; absent when it is not mounted (see mountsHostsFile). */
  readonly hostsFilePath?: string;
  /** The termination message file on the node; absent when the container has no path for it. */
  readonly terminationLogPath?: string;
  /** Ephemeral containers: the target whose process namespace is shared. */
  readonly targetContainerId?: ContainerId;
}

/** The node's settings for container configurations. */
export interface ContainerContext extends SecurityContextSettings {
  readonly resources: ResourceSettings;
  /** Whether SELinux is enabled, so files created for a container must be labelled. */
  readonly seLinux?: boolean;
}

/**
 * The configuration of one container instance, equal to that of the Go kubelet 1.36.
 * @throws ContainerConfigError when the spec requires what the image or the node cannot provide (runAsNonRoot …)
 */
export function generateContainerConfig(
  pod: Pod,
  container: Container,
  inputs: ContainerInputs,
  context: ContainerContext,
): ContainerConfig {
  const { restartCount, environment, volumeMounts, edits } = inputs;
  const { name, namespace, uid } = pod.metadata;
  const securityContext = containerSecurityContext(pod, container, inputs.imageUser, context);
  const namespaces = securityContext.namespaceOptions;
  const joined = inputs.targetContainerId !== undefined && namespaces?.pid === NamespaceMode.CONTAINER;
  return {
    metadata: { name: container.name, attempt: restartCount },
    image: { image: inputs.imageRef, userSpecifiedImage: container.image ?? "" },
    command: [...inputs.command],
    args: [...inputs.args],
    workingDir: container.workingDir ?? "",
    envs: [...(edits.environment ?? []), ...environment].map((variable) => ({
      key: variable.name,
      value: variable.value,
    })),
    mounts: [...(edits.mounts ?? []), ...volumeMounts, ...ownMounts(container, inputs, context.seLinux === true)].map(
      (mount) => ({
        ...mount,
        // With ID mapping, files belong to the pod's users inside as they do to the node's outside.
        ...(context.userNamespace && idMappings(context.userNamespace)),
      }),
    ),
    labels: {
      [Label.podName]: name,
      [Label.podNamespace]: namespace,
      [Label.podUid]: uid,
      [Label.containerName]: container.name,
    },
    annotations: { ...edits.annotations, ...containerAnnotations(pod, container, inputs) },
    devices: [...(edits.devices ?? []), ...(inputs.devices ?? [])],
    CDIDevices: [...(edits.cdiDevices ?? [])],
    logPath: containerLogPath(container.name, restartCount),
    stdin: container.stdin ?? false,
    stdinOnce: container.stdinOnce ?? false,
    tty: container.tty ?? false,
    stopSignal: stopSignalOf(container),
    linux: {
      resources: containerResources(pod, container, context.resources, edits),
      securityContext: joined
        ? {
            ...securityContext,
            namespaceOptions: { ...namespaces, pid: NamespaceMode.TARGET, targetId: inputs.targetContainerId ?? "" },
          }
        : securityContext,
    },
  };
}

function idMappings({ uids, gids }: UserNamespace): Pick<Mount, "uidMappings" | "gidMappings"> {
  return { ...(uids && { uidMappings: uids }), ...(gids && { gidMappings: gids }) };
}

/** Files that every container gets beside its volumes. */
function ownMounts(container: Container, inputs: ContainerInputs, seLinux: boolean): Mount[] {
  const mounts: Mount[] = [];
  if (inputs.hostsFilePath !== undefined) {
    mounts.push({ containerPath: hostsPath, hostPath: inputs.hostsFilePath, selinuxRelabel: seLinux });
  }
  const messagePath = container.terminationMessagePath;
  if (inputs.terminationLogPath !== undefined && messagePath) {
    const containerPath = messagePath.startsWith("/") ? messagePath : `/${messagePath}`;
    mounts.push({ containerPath, hostPath: inputs.terminationLogPath, selinuxRelabel: seLinux });
  }
  return mounts;
}

/**
 * What a later run of the kubelet needs to know about a container when its pod is gone or changed. The JSON equals Go's
 * byte for byte, so either kubelet reads the other's.
 */
function containerAnnotations(pod: Pod, container: Container, inputs: ContainerInputs): Record<string, string> {
  const { deletionGracePeriodSeconds } = pod.metadata;
  const { terminationGracePeriodSeconds } = pod.spec;
  const preStop = container.lifecycle?.preStop;
  return {
    [Annotation.hash]: containerHash(container),
    [Annotation.restartCount]: String(inputs.restartCount),
    [Annotation.terminationMessagePath]: container.terminationMessagePath ?? "",
    [Annotation.terminationMessagePolicy]: container.terminationMessagePolicy ?? "",
    ...(deletionGracePeriodSeconds !== undefined && {
      [Annotation.deletionGracePeriod]: String(deletionGracePeriodSeconds),
    }),
    ...(terminationGracePeriodSeconds !== undefined && {
      [Annotation.terminationGracePeriod]: String(terminationGracePeriodSeconds),
    }),
    ...(preStop && { [Annotation.preStopHandler]: preStopJson(preStop) }),
    ...(container.ports?.length && { [Annotation.ports]: portsJson(container.ports) }),
  };
}

/** JSON of []v1.ContainerPort: Go's field order, zero values omitted except containerPort. */
function portsJson(ports: NonNullable<Container["ports"]>): string {
  return goJson(
    ports.map((port) => ({
      ...(port.name && { name: port.name }),
      ...(port.hostPort && { hostPort: port.hostPort }),
      containerPort: port.containerPort,
      ...(port.protocol && { protocol: port.protocol }),
      ...(port.hostIP && { hostIP: port.hostIP }),
    })),
  );
}

type LifecycleHandler = NonNullable<NonNullable<Container["lifecycle"]>["preStop"]>;

/** JSON of v1.LifecycleHandler: Go's field order, zero values omitted as in Go. */
function preStopJson({ exec, httpGet, tcpSocket, sleep }: LifecycleHandler): string {
  return goJson({
    ...(exec && { exec: { ...(exec.command?.length && { command: exec.command }) } }),
    ...(httpGet && {
      httpGet: {
        ...(httpGet.path && { path: httpGet.path }),
        port: httpGet.port,
        ...(httpGet.host && { host: httpGet.host }),
        ...(httpGet.scheme && { scheme: httpGet.scheme }),
        ...(httpGet.httpHeaders?.length && {
          httpHeaders: httpGet.httpHeaders.map((header) => ({ name: header.name, value: header.value })),
        }),
      },
    }),
    ...(tcpSocket && { tcpSocket: { port: tcpSocket.port, ...(tcpSocket.host && { host: tcpSocket.host }) } }),
    ...(sleep && { sleep: { seconds: sleep.seconds } }),
  });
}
