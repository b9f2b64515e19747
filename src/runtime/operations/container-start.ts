import type { Pod } from "../../api/pod.ts";
import { errorMessage } from "../../base/errors.ts";
import { type ContainerId, containerId } from "../../base/ids.ts";
import { invariant } from "../../base/invariant.ts";
import { bothEnded } from "../../base/side-by-side.ts";
import type { ImageLeases } from "../../images/image-leases.ts";
import type { PodRef } from "../../journal/entry.ts";
import { type ActionInput, perform } from "../../journal/perform.ts";
import type { ResourceRecord } from "../../resources/resource-record.ts";
import { VolumeError } from "../volume-error.ts";
import type { ContainerToStart } from "../actions/container-decision.ts";
import { shortId } from "../actions/sandbox-actions.ts";
import type { ContainerConfig } from "../config/container-config.ts";
import { ignoredImageSubPath, imageMountsOf } from "../config/image-mounts.ts";
import type { MountedVolumes } from "../config/mounted-volumes.ts";
import { dependsOnHandler } from "../config/pod-features.ts";
import type { SandboxConfig } from "../config/sandbox-config.ts";
import { imageVolumesOf, withImages } from "../config/volume-images.ts";
import { honoursStopSignal } from "../config/stop-signal.ts";
import type { Effects } from "../effects.ts";
import { linkLog } from "../layout/log-links.ts";
import type { NodeContext } from "../node-context.ts";
import { podRef } from "../pod-ref.ts";
import type { PodCgroupProvider, VolumeProvider } from "../providers.ts";
import { recordActuated } from "../status/actuated.ts";
import type { ContainerConfigs, StartInputs } from "./container-configs.ts";
import type { ContainerImages } from "./container-image.ts";
import type { ContainerRemoval } from "./container-removal.ts";
import { recordLateContainer } from "./late-container.ts";
import { patiently } from "./patiently.ts";
import type { OperationProgress } from "./pod-operation.ts";
import type { PostStarts } from "./post-start.ts";
import type { StartAttempts } from "./start-attempts.ts";
import { StartError, startStep } from "./start-error.ts";
import type { StartPlace } from "./start-place.ts";

/** The sandbox in which a container starts. */
export interface StartSandbox {
  readonly id: string;
  readonly config: SandboxConfig;
  readonly ips: readonly string[];
  /** The pod's volumes, if they were mounted for this very start. */
  readonly volumes?: MountedVolumes | undefined;
}

/** How a start proceeds relative to others. */
export interface StartProgress {
  readonly place: StartPlace;
  readonly progress: Pick<OperationProgress, "attempted">;
}

/** The dependencies of every start. */
export interface StartParts {
  readonly images: ContainerImages;
  readonly leases: Pick<ImageLeases, "take">;
  readonly volumes: Pick<VolumeProvider, "mount">;
  readonly configs: ContainerConfigs;
  readonly podCgroups: Pick<PodCgroupProvider, "raise">;
  readonly actuated: Pick<ResourceRecord, "setPart" | "saved">;
  readonly attempts: StartAttempts;
  readonly removal: Pick<ContainerRemoval, "removeUnstarted">;
  readonly postStarts: PostStarts;
  readonly node: Pick<NodeContext, "containerLogsRoot" | "podLogsRoot">;
}

/** The start of one container: image, volumes, configuration, create, start, log link, postStart hook. */
export class ContainerStart {
  readonly #effects: Effects;
  readonly #parts: StartParts;
  readonly #pod: Pod;
  readonly #ref: PodRef;
  readonly #sandbox: StartSandbox;
  readonly #start: ContainerToStart;
  #hasBegun = false;

  constructor(effects: Effects, parts: StartParts, pod: Pod, sandbox: StartSandbox, start: ContainerToStart) {
    this.#effects = effects;
    this.#parts = parts;
    this.#pod = pod;
    this.#ref = podRef(pod);
    this.#sandbox = sandbox;
    this.#start = start;
  }

  /**
   * Resolves when the postStart hook has ended; a container whose hook fails is stopped. To be called once.
   * @throws StartError, or the signal's reason when canceled
   */
  async run(beside: StartProgress, signal: AbortSignal): Promise<void> {
    const { ips } = this.#sandbox;
    const id = await this.#make(beside, signal);
    const started = { pod: this.#pod, start: this.#start, id, sandboxIPs: ips };
    await beside.place.during("a postStart hook", this.#parts.postStarts.run(started, signal));
  }

  async #make({ place, progress }: StartProgress, signal: AbortSignal): Promise<ContainerId> {
    const { leases } = this.#parts;
    const { config: sandboxConfig, ips } = this.#sandbox;
    const subject = (): string => `${this.#ref.uid}/${this.#start.container.name}`;
    invariant("a start is carried out once", !this.#hasBegun, subject);
    this.#hasBegun = true;
    // It shares that one's addresses and namespaces.
    invariant("a container starts in its pod's sandbox", sandboxConfig.metadata?.uid === this.#ref.uid, subject);
    using lease = leases.take();
    const [images, mounted] = await place.during(
      "a start's images and volumes",
      bothEnded(
        this.#parts.images.ensure(this.#pod, this.#start, { sandboxConfig, lease }, signal),
        this.#volumes(signal).then((found) => {
          signal.throwIfAborted();
          progress.attempted(this.#start.container);
          return found;
        }),
      ),
    );
    const { image } = images;
    const volumes = withImages(mounted, images.volumes);
    const queuedMs = await place.take("first", signal);
    return await this.#createAndRun({ image, volumes, ips }, queuedMs, signal);
  }

  /** Created before the sandbox; a restart may come long after that, and in another run of podwright. */
  async #volumes(signal: AbortSignal): Promise<MountedVolumes> {
    if (this.#sandbox.volumes !== undefined) return this.#sandbox.volumes;
    const { container, cause } = this.#start;
    try {
      const { runtimeClassName } = this.#pod.spec;
      const spec = {
        containers: [container],
        ...(dependsOnHandler(this.#pod, container) && { runtimeClassName }),
      };
      return await this.#parts.volumes.mount(this.#pod, { spec, services: "remembered" }, cause, signal);
    } catch (error) {
      if (!(error instanceof VolumeError)) throw error;
      throw new StartError("ContainerCreating", error.message, { cause: error });
    }
  }

  async #createAndRun(inputs: StartInputs, queuedMs: number, signal: AbortSignal): Promise<ContainerId> {
    const { attempts, removal } = this.#parts;
    const { container, attempt, leftover, cause } = this.#start;
    const [config] = await bothEnded(this.#config(inputs, signal), this.#grantResources());
    if (leftover !== undefined) {
      // Observed not to have run, whatever its start returned: it does not count.
      attempts.making(this.#ref.uid, container.name, attempt);
      await startStep("CreateContainerError", () => removal.removeUnstarted(this.#ref, leftover, cause, signal));
    }
    const id = await this.#create(config, queuedMs, signal);
    const { files, log } = this.#effects;
    const linking = { files, log, node: this.#parts.node };
    await bothEnded(this.#run(id, signal), linkLog(linking, this.#pod, container.name, attempt, id));
    return containerId(id);
  }

  async #config(inputs: StartInputs, signal: AbortSignal): Promise<ContainerConfig> {
    try {
      return await this.#parts.configs.make(this.#pod, this.#start, inputs, signal);
    } catch (error) {
      signal.throwIfAborted();
      throw this.#misconfigured(errorMessage(error), { cause: error });
    }
  }

  /** No call to the runtime, hence no action in the journal: an observation records it. */
  #misconfigured(message: string, options: ErrorOptions = {}): StartError {
    const { container, cause } = this.#start;
    const about = { pod: this.#ref, container: container.name, cause };
    this.#effects.journal.record({ kind: "observation", what: "ContainerConfigError", message, ...about });
    return new StartError("CreateContainerConfigError", message, options);
  }

  /**
   * The allocation may have grown since the pod's cgroup was created. It is recorded before the container is created:
   * later resizes ignore containers without a record.
   */
  async #grantResources(): Promise<void> {
    const { container, kind } = this.#start;
    if (kind === "ephemeral") return;
    const { podCgroups, actuated } = this.#parts;
    await startStep("CreateContainerError", () => podCgroups.raise(this.#pod));
    recordActuated(actuated, this.#pod, container);
    await actuated.saved();
  }

  async #create(config: ContainerConfig, queuedMs: number, signal: AbortSignal): Promise<string> {
    signal.throwIfAborted();
    const { container, attempt, cause } = this.#start;
    const { clock, cri, journal } = this.#effects;
    const action: ActionInput = {
      what: "CreateContainer",
      message: `create container ${container.name}, attempt ${attempt}`,
      pod: this.#ref,
      container: container.name,
      cause,
      data: { attempt, sandbox: this.#sandbox.id, queuedMs },
      outcomeData: this.#imageMounts(config),
    };
    const isAgain = this.#parts.attempts.making(this.#ref.uid, container.name, attempt);
    const request = { podSandboxId: this.#sandbox.id, config, sandboxConfig: this.#sandbox.config };
    const { containerId: id } = await startStep("CreateContainerError", () =>
      perform(journal, clock, action, () =>
        patiently(clock, "a container", signal, (options) => cri.runtime.createContainer(request, options)),
      ),
    );
    if (isAgain) await recordLateContainer({ cri, actuated: this.#parts.actuated }, this.#pod, this.#start, id);
    const ignored = await startStep("CreateContainerError", () => this.#ignored(config, id));
    if (ignored !== undefined) throw this.#misconfigured(ignored);
    return id;
  }

  /**
   * What the runtime ignores of the configuration, if it would harm. Looked at before the container runs: a wrong signal
   * would be discovered only at its end.
   */
  async #ignored(config: ContainerConfig, id: string): Promise<string | undefined> {
    const { cri } = this.#effects;
    const { container } = this.#start;
    if (!(await honoursStopSignal(cri, container, id))) {
      const wanted = container.lifecycle?.stopSignal;
      return `the container runtime does not support lifecycle.stopSignal and would not send ${wanted}`;
    }
    const subPath = await ignoredImageSubPath(cri, config, id);
    if (subPath === undefined) return undefined;
    return `the container runtime does not support a subPath of an image volume, and would mount the whole image instead of ${JSON.stringify(subPath)}`;
  }

  /** How many image volumes and mounts of them the container has, for metrics; empty without any. */
  #imageMounts(config: ContainerConfig): Readonly<Record<string, number>> {
    const imageMounts = imageMountsOf(config).length;
    if (imageMounts === 0) return {};
    return { imageVolumes: imageVolumesOf(this.#pod, this.#start.container).length, imageMounts };
  }

  async #run(id: string, signal: AbortSignal): Promise<void> {
    // Canceled meanwhile: the next observation shows it as created and removes it with the pod.
    signal.throwIfAborted();
    const { container, attempt, kind, cause } = this.#start;
    const { clock, cri, journal } = this.#effects;
    this.#parts.attempts.started(this.#ref.uid, container.name);
    const action: ActionInput = {
      what: "StartContainer",
      message: `start container ${container.name} (${shortId(id)})`,
      pod: this.#ref,
      container: container.name,
      cause,
      data: { id, attempt, kind },
    };
    await startStep("RunContainerError", () =>
      perform(journal, clock, action, () =>
        patiently(clock, "a start", signal, (options) => cri.runtime.startContainer({ containerId: id }, options)),
      ),
    );
  }
}
