import type { Pod } from "../../api/pod.ts";
import { restartsWhenKilled } from "../../api/restart-policy.ts";
import type { Places } from "../../base/places.ts";
import { errorMessage } from "../../base/errors.ts";
import { bothEnded } from "../../base/side-by-side.ts";
import type { Cause, PodRef } from "../../journal/entry.ts";
import { volumeGroups } from "../config/mounted-volumes.ts";
import { VolumeError } from "../volume-error.ts";
import type { ContainerToKill, ContainerToStart } from "../actions/container-decision.ts";
import { containerGraceSeconds, gracePeriodSeconds } from "../actions/grace.ts";
import type { PodActions } from "../actions/pod-actions.ts";
import type { PodResize } from "../actions/resize-actions.ts";
import type { Effects } from "../effects.ts";
import { podRef } from "../pod-ref.ts";
import type { VolumeProvider } from "../providers.ts";
import type { PodStatus, SandboxStatus } from "../status/pod-status.ts";
import { remainsOf } from "../status/remains.ts";
import type { ContainerRemoval } from "./container-removal.ts";
import { ContainerStart, type StartParts, type StartProgress, type StartSandbox } from "./container-start.ts";
import { withLostAttempts } from "./lost-attempts.ts";
import { killContainerError, type OperationProgress, type PodOperation, type StartFailure } from "./pod-operation.ts";
import type { PodPreparation } from "./pod-preparation.ts";
import type { PodResizer } from "./pod-resizer.ts";
import type { PodSandboxes } from "./pod-sandboxes.ts";
import type { PodStopper } from "./pod-stopper.ts";
import { resizeOperation } from "./resize-operation.ts";
import { restartAllContainers } from "./restart-all.ts";
import { failureOf, StartError } from "./start-error.ts";
import { StartPlace } from "./start-place.ts";

/** The dependencies for carrying out any pod's actions. */
export interface SyncParts {
  readonly preparation: PodPreparation;
  readonly sandboxes: PodSandboxes;
  readonly containers: StartParts;
  readonly stopper: PodStopper;
  readonly removal: ContainerRemoval;
  readonly resizer: PodResizer;
  readonly volumes: Pick<VolumeProvider, "mount">;
  /**
   * Number of pods whose sandboxes and containers start concurrently. Containers of pods with a sandbox go first, so
   * that under load pods become ready one after the other rather than all at the end.
   */
  readonly starts: Places;
  /** Why the runtime's network is not ready; undefined: ready, or unknown. */
  readonly networkProblem: () => string | undefined;
}

/** The sandbox for the containers, at the time of their start. */
type SandboxLookup = (cause: Cause, signal: AbortSignal) => Promise<StartSandbox>;

type RestartStep = (progress: OperationProgress, signal: AbortSignal) => Promise<void>;

/** Carries out the decision for one pod (upstream's SyncPod, from step 2 on). */
export class PodSync {
  readonly #effects: Effects;
  readonly #parts: SyncParts;
  readonly #pod: Pod;
  readonly #ref: PodRef;
  readonly #status: PodStatus;

  constructor(effects: Effects, parts: SyncParts, pod: Pod, status: PodStatus) {
    this.#effects = effects;
    this.#parts = parts;
    this.#pod = pod;
    this.#ref = podRef(pod);
    this.#status = status;
  }

  /**
   * The operations of a decision. First starts in a sandbox are one operation in spec order, so that a service mesh's
   * proxy is up before the application; each restart is an operation of its own and waits for no sibling.
   */
  operations(actions: PodActions): PodOperation[] {
    const { createSandbox: creation, sandbox, restartAll } = actions;
    if (creation !== undefined) return [this.#newSandbox(actions, creation)];
    if (restartAll !== undefined) return [restartAllContainers(this.#parts, this.#pod, this.#status, restartAll)];
    return sandbox === undefined ? [] : this.#inSandbox(actions, sandbox);
  }

  #inSandbox(actions: PodActions, sandbox: SandboxStatus): PodOperation[] {
    const current = this.#current(sandbox);
    const firstStarts = actions.containersToStart.filter((start) => !start.restart);
    const restarts = actions.containersToStart.filter((start) => start.restart);
    const ordered = firstStarts.filter(({ kind }) => kind !== "ephemeral");
    const alone = firstStarts.filter(({ kind }) => kind === "ephemeral").map((start) => [start]);
    const groups = ordered.length === 0 ? alone : [ordered, ...alone];
    const operations = groups.map((starts) => this.#firstStart(starts, current));
    const killOf = (name: string): RestartStep | undefined => {
      const kill = actions.containersToKill.find(({ container }) => container.name === name);
      return kill && ((...beside) => this.#kill(sandbox, kill, ...beside));
    };
    for (const start of restarts) {
      const { name } = start.container;
      operations.push(this.#restart(name, killOf(name), (...beside) => this.#startOne(current, start, ...beside)));
    }
    if (actions.resize !== undefined) operations.push(this.#resize(sandbox, actions.resize, current));
    for (const { container } of actions.containersToKill) {
      if (restarts.some((start) => start.container.name === container.name)) continue;
      operations.push(this.#restart(container.name, killOf(container.name), undefined));
    }
    return operations;
  }

  #newSandbox(actions: PodActions, creation: NonNullable<PodActions["createSandbox"]>): PodOperation {
    const { attempt, cause } = creation;
    const starts = actions.containersToStart;
    return {
      name: attempt === 0 ? "start the pod" : "start the pod in a new sandbox",
      containers: starts.map(({ container }) => container.name),
      wholePod: true,
      run: async (progress, signal) => {
        using place = this.#place();
        let sandbox: StartSandbox;
        const withoutNetwork = this.#networkFailure(cause);
        if (withoutNetwork !== undefined) return progress.sandboxFailed(withoutNetwork);
        try {
          if (actions.killPod !== undefined) await this.#stopAll(actions.killPod, progress, signal);
          // Before the sandbox, since a pod that waits for a volume needs none, and before a slot among the starts:
          // neither costs the runtime anything.
          const [volumes] = await bothEnded(
            this.#parts.volumes.mount(this.#pod, { spec: this.#pod.spec, services: "live" }, cause, signal),
            this.#parts.preparation.prepare(this.#pod, cause),
          );
          const queuedMs = await place.take("later", signal);
          const creating = { attempt, cause, queuedMs, volumeGroups: volumeGroups(volumes) };
          const made = await this.#parts.sandboxes.create(this.#pod, creating, signal);
          sandbox = { ...made, volumes };
        } catch (error) {
          signal.throwIfAborted();
          const reason = error instanceof VolumeError ? "ContainerCreating" : "CreatePodSandboxError";
          progress.sandboxFailed({ reason, message: errorMessage(error), retryAtMs: undefined, error });
          return;
        }
        progress.sandboxMade();
        await this.#startInOrder(starts, async () => sandbox, { place, progress }, signal);
      },
    };
  }

  #firstStart(starts: readonly ContainerToStart[], into: SandboxLookup): PodOperation {
    const containers = starts.map(({ container }) => container.name);
    return {
      name: `start ${containers.join(", ")}`,
      containers,
      wholePod: false,
      run: async (progress, signal) => {
        using place = this.#place();
        await this.#startInOrder(starts, into, { place, progress }, signal);
      },
    };
  }

  /** Stops the running instance, if any, and starts the next, if any. */
  #restart(name: string, kill: RestartStep | undefined, start: RestartStep | undefined): PodOperation {
    return {
      name: `${start === undefined ? "stop" : "restart"} container ${name}`,
      containers: [name],
      wholePod: false,
      run: async (progress, signal) => {
        try {
          await kill?.(progress, signal);
          await start?.(progress, signal);
          progress.settled(name, undefined);
        } catch (error) {
          signal.throwIfAborted();
          progress.settled(name, failureOf(error));
        }
      },
    };
  }

  #resize(sandbox: SandboxStatus, resize: PodResize, current: SandboxLookup): PodOperation {
    const steps = {
      stop: this.#stop.bind(this, sandbox),
      resize: (signal: AbortSignal) => this.#parts.resizer.resize(this.#pod, sandbox, resize, signal),
      start: this.#startOne.bind(this, current),
    };
    return resizeOperation(steps, resize);
  }

  /**
   * The pod's existing sandbox, with its holdings: if it was created late, after the pod had ended, those are missing.
   */
  #current(sandbox: SandboxStatus): SandboxLookup {
    let isPrepared = this.#status.containers.length > 0;
    return async (cause, signal) => {
      if (!isPrepared) await this.#parts.preparation.prepare(this.#pod, cause);
      isPrepared = true;
      return this.#parts.sandboxes.current(this.#pod, this.#status, sandbox, signal);
    };
  }

  /** A failed start delays no other. */
  async #startInOrder(
    starts: readonly ContainerToStart[],
    into: SandboxLookup,
    beside: StartProgress & { readonly progress: OperationProgress },
    signal: AbortSignal,
  ): Promise<void> {
    const { files } = this.#effects;
    const { attempts, node } = this.#parts.containers;
    for (const [index, start] of starts.entries()) {
      const { name } = start.container;
      try {
        const counted = await withLostAttempts({ files, node, attempts }, this.#pod, start);
        const { volumes, ...rest } = await into(start.cause, signal);
        const sandbox = index === 0 ? { ...rest, volumes } : rest;
        await this.#start(sandbox, counted).run(beside, signal);
        beside.progress.settled(name, undefined);
      } catch (error) {
        signal.throwIfAborted();
        beside.progress.settled(name, failureOf(error));
      }
    }
  }

  async #startOne(
    into: SandboxLookup,
    start: ContainerToStart,
    progress: OperationProgress,
    signal: AbortSignal,
  ): Promise<void> {
    using place = this.#place();
    await this.#start(await into(start.cause, signal), start).run({ place, progress }, signal);
  }

  #start(sandbox: StartSandbox, start: ContainerToStart): ContainerStart {
    return new ContainerStart(this.#effects, this.#parts.containers, this.#pod, sandbox, start);
  }

  #place(): StartPlace {
    return new StartPlace(this.#parts.starts, this.#effects.clock);
  }

  /** Stops the rest of the pod, to start it in another sandbox. */
  async #stopAll(cause: Cause, progress: OperationProgress, signal: AbortSignal): Promise<void> {
    const remains = remainsOf(this.#status);
    const again = remains.containers.filter(({ name }) => {
      return this.#pod.spec.containers.some((own) => own.name === name && restartsWhenKilled(this.#pod, own));
    });
    if (again.length > 0) {
      await progress.stopping(
        again.map(({ id }) => id),
        cause,
      );
    }
    const target = { ref: this.#ref, pod: this.#pod, graceSeconds: gracePeriodSeconds(this.#pod), cause };
    await this.#parts.stopper.stopPod(target, remains, signal);
  }

  /** @throws StartError */
  async #kill(
    sandbox: SandboxStatus,
    kill: ContainerToKill,
    progress: OperationProgress,
    signal: AbortSignal,
  ): Promise<void> {
    try {
      await this.#stop(sandbox, kill, progress, signal);
    } catch (error) {
      signal.throwIfAborted();
      throw new StartError(killContainerError, errorMessage(error), { cause: error });
    }
  }

  async #stop(
    { ips }: SandboxStatus,
    kill: ContainerToKill,
    progress: OperationProgress,
    signal: AbortSignal,
  ): Promise<void> {
    if (kill.restarts === true) await progress.stopping([kill.container.id], kill.cause);
    const graceSeconds = containerGraceSeconds(this.#pod, kill.graceSeconds);
    const container = { ...kill.container, eventMessage: kill.eventMessage };
    const target = { ref: this.#ref, pod: this.#pod, graceSeconds, cause: kill.cause };
    await this.#parts.stopper.stopContainer({ ...target, container, sandboxIPs: ips }, signal);
  }

  /** The runtime would create the sandbox and tear it down again: the pod waits until the network is ready. */
  #networkFailure(cause: Cause): StartFailure | undefined {
    const problem = this.#pod.spec.hostNetwork === true ? undefined : this.#parts.networkProblem();
    if (problem === undefined) return undefined;
    const message = `network is not ready: ${problem}`;
    this.#effects.journal.record({ kind: "observation", what: "NetworkNotReady", message, pod: this.#ref, cause });
    return { reason: "ContainerCreating", message, retryAtMs: undefined };
  }
}
