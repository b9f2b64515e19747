import type { Container } from "../../api/container.ts";
import type { Pod } from "../../api/pod.ts";
import type { Cause, PodRef } from "../../journal/entry.ts";
import { type ActionInput, perform } from "../../journal/perform.ts";
import type { CgroupState } from "../../ports/cgroups.ts";
import { isCriError } from "../../ports/cri.ts";
import { containerResources, sandboxOverhead, sandboxResources } from "../../resources/container-resources.ts";
import { compareLimits } from "../../resources/pod-cgroups.ts";
import { milliQuantity, quantityOf } from "../../resources/quantity.ts";
import type { ResizableResource } from "../../resources/resizable.ts";
import type { ContainerEditor } from "../../resources/resource-manager.ts";
import type { ResourceRecord } from "../../resources/resource-record.ts";
import { type Amounts, type ContainerResize, describeResize, type PodResize } from "../actions/resize-actions.ts";
import type { Effects } from "../effects.ts";
import type { NodeContext } from "../node-context.ts";
import { podRef } from "../pod-ref.ts";
import type { PodCgroupProvider } from "../providers.ts";
import { recordActuated } from "../status/actuated.ts";
import type { SandboxStatus } from "../status/pod-status.ts";
import { limitsText, type PodLimits, stepsFor, unlimited } from "./resize-steps.ts";

/** A resize that cannot be applied as things are. */
export class ResizeError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "ResizeError";
  }
}

const inOrder: readonly ResizableResource[] = ["memory", "cpu"];

type ResizeEffects = Pick<Effects, "clock" | "cri" | "journal">;

export interface ResizerParts {
  readonly podCgroups: Pick<PodCgroupProvider, "resourcesOf" | "read" | "apply" | "ensure">;
  readonly actuated: Pick<ResourceRecord, "setPart" | "saved">;
  readonly editor: ContainerEditor;
  readonly node: Pick<NodeContext, "resources">;
}

/** The pod to resize, and why. */
interface Subject {
  readonly pod: Pod;
  readonly ref: PodRef;
  readonly sandbox: SandboxStatus;
  readonly cause: Cause;
}

/**
 * Applies the allocated resources to the cgroups of pods and their running containers (upstream: doPodResizeAction).
 */
export class PodResizer {
  readonly #effects: ResizeEffects;
  readonly #parts: ResizerParts;

  constructor(effects: ResizeEffects, parts: ResizerParts) {
    this.#effects = effects;
    this.#parts = parts;
  }

  /**
   * Memory first, then CPU, in an order in which no container ever has more than its pod: increases start at the pod,
   * decreases at the containers. Idempotent: it is recorded at the end.
   * @throws ResizeError when memory to be taken away is in use; CriError and FileError
   */
  async resize(pod: Pod, sandbox: SandboxStatus, resize: PodResize, signal: AbortSignal): Promise<void> {
    const { podCgroups, actuated } = this.#parts;
    const wanted = podCgroups.resourcesOf(pod);
    const present = await podCgroups.read(pod);
    await this.#refuseToTakeUsedMemory(resize, wanted, present, signal);
    const subject = { pod, ref: podRef(pod), sandbox, cause: resize.cause };
    for (const name of inOrder) {
      for (const step of stepsFor(name, present.resources, wanted, resize.updates)) {
        signal.throwIfAborted();
        if ("container" in step) await this.#updateContainer(subject, step, name, signal);
        else await this.#updatePod(subject, step, signal);
      }
    }
    await podCgroups.ensure(pod);
    for (const { container } of resize.updates) recordActuated(actuated, pod, container);
    recordActuated(actuated, pod, undefined);
    await actuated.saved();
  }

  async #updateContainer(
    { pod, ref, cause }: Subject,
    update: ContainerResize,
    name: ResizableResource,
    signal: AbortSignal,
  ): Promise<void> {
    const { container, running } = update;
    const { clock, cri, journal } = this.#effects;
    const changed = withAmounts(container, amountsAfter(name, update));
    const { editor, node } = this.#parts;
    const linux = containerResources(pod, changed, node.resources, editor.edits(pod, changed));
    const message = `resize container ${container.name}: ${describeResize(update, name)}`;
    const action: ActionInput = {
      what: "UpdateContainerResources",
      message,
      pod: ref,
      container: container.name,
      cause,
    };
    await perform(journal, clock, action, async () => {
      await cri.runtime.updateContainerResources({ containerId: running.id, linux }, { signal });
    });
  }

  async #updatePod(subject: Subject, limits: PodLimits, signal: AbortSignal): Promise<void> {
    const { pod, ref, cause } = subject;
    const { clock, journal } = this.#effects;
    const message = `set limits of the pod's cgroup: ${limitsText(limits)}`;
    await perform(journal, clock, { what: "UpdatePodCgroup", message, pod: ref, cause, data: limits }, async () => {
      await this.#tellRuntime(subject, signal);
      await this.#parts.podCgroups.apply(pod, limits);
    });
  }

  /** A runtime that implements the call (virtual machines, plug-ins) may refuse; one that does not is ignored. */
  async #tellRuntime({ pod, sandbox }: Subject, signal: AbortSignal): Promise<void> {
    const settings = this.#parts.node.resources;
    const resources = sandboxResources(pod, settings);
    const overhead = sandboxOverhead(pod, settings);
    const request = { podSandboxId: sandbox.id, resources, overhead };
    try {
      await this.#effects.cri.runtime.updatePodSandboxResources(request, { signal });
    } catch (error) {
      // containerd 2.2 reports it with another code.
      const unknown = isCriError(error, "Unknown") && error.message.includes("not implemented");
      if (!unknown && !isCriError(error, "Unimplemented")) throw error;
    }
  }

  /** Taking away memory in use would get the container OOM-killed, or leave the resize half done. */
  async #refuseToTakeUsedMemory(
    { updates }: PodResize,
    { memoryLimitBytes: limit }: PodLimits,
    present: Pick<CgroupState, "resources" | "memoryUsageBytes">,
    signal: AbortSignal,
  ): Promise<void> {
    const problems: string[] = [];
    const shrinks = limit !== undefined && compareLimits(limit, present.resources.memoryLimitBytes ?? -1) < 0;
    if (shrinks && present.memoryUsageBytes >= limit) {
      problems.push(`attempting to set pod memory limit (${limit}) below current usage (${present.memoryUsageBytes})`);
    }
    for (const { container, running, from, to } of updates) {
      if (to.memoryLimit === 0n || unlimited(to.memoryLimit) >= unlimited(from.memoryLimit)) continue;
      const { stats } = await this.#effects.cri.runtime.containerStats({ containerId: running.id }, { signal });
      const usage = stats?.memory?.usageBytes?.value ?? stats?.memory?.workingSetBytes?.value;
      if (usage === undefined) problems.push(`missing container "${container.name}" memory usage`);
      else if (usage >= to.memoryLimit) {
        const limits = `memory limit (${to.memoryLimit}) below current usage (${usage})`;
        problems.push(`attempting to set container "${container.name}" ${limits}`);
      }
    }
    if (problems.length > 0) throw new ResizeError(`cannot decrease memory limits: ${problems.join("; ")}`);
  }
}

/** Memory changes first: CPU keeps its old values meanwhile, and memory has its new ones afterwards. */
function amountsAfter(name: ResizableResource, { from, to }: ContainerResize): Amounts {
  return name === "memory" ? { ...from, memoryRequest: to.memoryRequest, memoryLimit: to.memoryLimit } : to;
}

type List = Readonly<Record<string, string | number>>;

/**
 * The container with these amounts; other resources stay. Unset requests stay unset: a container without a request has
 * the CPU weight of its limit.
 */
function withAmounts(container: Container, amounts: Amounts): Container {
  const { limits, requests } = container.resources ?? {};
  const list = (own: List = {}, cpu: bigint, memory: bigint): List => ({
    ...own,
    ...((cpu > 0n || own["cpu"] !== undefined) && { cpu: milliQuantity(cpu).toString() }),
    ...((memory > 0n || own["memory"] !== undefined) && { memory: quantityOf(memory, "BinarySI").toString() }),
  });
  return {
    ...container,
    resources: {
      limits: list(limits, amounts.cpuLimit, amounts.memoryLimit),
      requests: list(requests, amounts.cpuRequest, amounts.memoryRequest),
    },
  };
}
