import type { Container } from "../../api/container.ts";
import type { Pod } from "../../api/pod.ts";
import { bothEnded } from "../../base/side-by-side.ts";
import type { ContainerId } from "../../base/ids.ts";
import { onePerFamily } from "../../base/ip.ts";
import type { EnsuredImage } from "../../images/image-manager.ts";
import type { ContainerToStart } from "../actions/container-decision.ts";
import { type ContainerConfig, generateContainerConfig } from "../config/container-config.ts";
import { ContainerConfigError } from "../config/container-config-error.ts";
import { expandCommand, makeEnvironment, type ObjectLookup } from "../config/environment.ts";
import { readEnvironmentFiles } from "../config/environment-file.ts";
import { hostsFile, mountsHostsFile } from "../config/hosts-file.ts";
import { type MountedVolumes, volumeGroups } from "../config/mounted-volumes.ts";
import { podIPs } from "../config/pod-ips.ts";
import { type ContainerEdits, EditConflictError } from "../../resources/container-edits.ts";
import type { ContainerEditor } from "../../resources/resource-manager.ts";
import type { Effects } from "../effects.ts";
import { makeContainerDirectories, makeTerminationLog, podDirectory } from "../layout/pod-directories.ts";
import type { NodeContext } from "../node-context.ts";
import type { UserNamespaceProvider, VolumeProvider } from "../providers.ts";
import { readNodeHosts } from "./node-hosts.ts";
import { volumeDevices } from "../config/volume-devices.ts";

export interface ContainerConfigParts {
  readonly objects: ObjectLookup;
  readonly volumes: VolumeProvider;
  readonly userNamespaces: Pick<UserNamespaceProvider, "namespaceOf">;
  readonly editor: ContainerEditor;
  readonly node: NodeContext;
}

/** The inputs that are known only when the container is created. */
export interface StartInputs {
  readonly image: EnsuredImage;
  readonly volumes: MountedVolumes;
  /** The sandbox's addresses. */
  readonly ips: readonly string[];
}

/** Builds container configurations and the files that they refer to. */
export class ContainerConfigs {
  readonly #effects: Pick<Effects, "files" | "random">;
  readonly #parts: ContainerConfigParts;

  constructor(effects: Pick<Effects, "files" | "random">, parts: ContainerConfigParts) {
    this.#effects = effects;
    this.#parts = parts;
  }

  /** @throws ContainerConfigError and FileError, or the signal's reason */
  async make(pod: Pod, start: ContainerToStart, inputs: StartInputs, signal: AbortSignal): Promise<ContainerConfig> {
    const { container } = start;
    const { objects, volumes, userNamespaces, node } = this.#parts;
    const { files, random } = this.#effects;
    const environment = makeEnvironment(pod, container, {
      objects,
      environmentFiles: await readEnvironmentFiles(volumes, container, inputs.volumes),
      podIPs: onePerFamily(podIPs(node, pod, inputs.ips), node.hostIPs[0]),
      hostIPs: node.hostIPs,
      serviceVariables: objects.serviceVariables?.(pod) ?? [],
      resources: node.resources,
    });
    const [terminationLogPath, hostsFilePath] = await bothEnded(
      makeContainerDirectories(files, node, pod, container).then(() =>
        makeTerminationLog(files, random, node, pod, container),
      ),
      this.#writeHostsFile(pod, start, inputs.ips),
    );
    const userNamespace = await userNamespaces.namespaceOf(pod);
    return generateContainerConfig(
      pod,
      container,
      {
        restartCount: start.attempt,
        imageRef: inputs.image.imageRef,
        imageUser: inputs.image.user,
        environment,
        ...expandCommand(container, environment),
        edits: this.#editsOf(pod, container),
        volumeMounts: await volumes.mountsFor(pod, container, environment, inputs.volumes, signal),
        devices: volumeDevices(container, inputs.volumes),
        ...targetOf(start),
        ...(hostsFilePath === undefined ? {} : { hostsFilePath }),
        ...(terminationLogPath === undefined ? {} : { terminationLogPath }),
      },
      {
        seccompProfileRoot: `${node.rootDirectory}/seccomp`,
        seccompDefault: node.seccompDefault,
        maskedPaths: node.maskedPaths,
        seLinux: node.seLinux,
        resources: node.resources,
        volumeGroups: volumeGroups(inputs.volumes),
        ...(userNamespace && { userNamespace }),
      },
    );
  }

  #editsOf(pod: Pod, container: Container): ContainerEdits {
    try {
      return this.#parts.editor.edits(pod, container);
    } catch (error) {
      if (error instanceof EditConflictError) throw new ContainerConfigError(error.message, { cause: error });
      throw error;
    }
  }

  /** The managed /etc/hosts, rewritten at each start so that it cannot grow. */
  async #writeHostsFile(
    pod: Pod,
    { container }: ContainerToStart,
    sandboxIPs: readonly string[],
  ): Promise<string | undefined> {
    if (!mountsHostsFile(pod, container, sandboxIPs)) return undefined;
    const { node } = this.#parts;
    const path = `${podDirectory(node, pod.metadata.uid)}/etc-hosts`;
    const nodeHosts = pod.spec.hostNetwork === true ? await readNodeHosts(this.#effects.files) : "";
    await this.#effects.files.write(path, hostsFile(pod, sandboxIPs, node.clusterDomain, nodeHosts), 0o644);
    return path;
  }
}

/** @throws ContainerConfigError while the target of an ephemeral container is not running */
function targetOf({ target }: ContainerToStart): { readonly targetContainerId?: ContainerId } {
  if (target === undefined) return {};
  if (target.id === undefined) throw new ContainerConfigError(`target container "${target.name}" does not run`);
  return { targetContainerId: target.id };
}
