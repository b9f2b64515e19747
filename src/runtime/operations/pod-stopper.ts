import { allContainers } from "../../api/all-containers.ts";
import type { Pod } from "../../api/pod.ts";
import { DeadlineError, withDeadline } from "../../base/deadline.ts";
import { errorMessage } from "../../base/errors.ts";
import { settleAll } from "../../base/side-by-side.ts";
import type { Cause, PodRef } from "../../journal/entry.ts";
import { type ActionInput, perform } from "../../journal/perform.ts";
import { stopTimeoutSeconds } from "../actions/grace.ts";
import { shortId } from "../actions/sandbox-actions.ts";
import { terminationOrder } from "../actions/termination-order.ts";
import type { ObjectLookup } from "../config/environment.ts";
import { hideSecrets } from "../config/hidden-secrets.ts";
import { podIPs } from "../config/pod-ips.ts";
import type { Effects } from "../effects.ts";
import type { NodeContext } from "../node-context.ts";
import type { ContainerStatus, SandboxStatus } from "../status/pod-status.ts";
import type { Remains } from "../status/remains.ts";
import type { ContainerRemoval } from "./container-removal.ts";
import type { HookRunner } from "./hooks.ts";
import { ignoreNotFound } from "./ignore-not-found.ts";
import { runPreStop } from "./pre-stop.ts";
import type { PreStopHooks } from "./pre-stop-hooks.ts";
import { type StoredHook, storedHook } from "./stored-hook.ts";
import type { Teardowns } from "./teardown.ts";
import { tellKill, type ToldContainer } from "./tell-kill.ts";

type StopEffects = Pick<Effects, "clock" | "cri" | "journal" | "log">;

export interface StopperParts {
  readonly hooks: HookRunner;
  readonly preStops: PreStopHooks;
  readonly removal: Pick<ContainerRemoval, "removeUnstarted">;
  readonly teardowns: Teardowns;
  readonly objects: Pick<ObjectLookup, "secret">;
  readonly node: Pick<NodeContext, "hostIPs">;
}

/** A pod to stop, whole or one container of it. */
export interface StopTarget {
  readonly ref: PodRef;
  /** Undefined for a pod that only the runtime knows: its sidecar order is unknown, its hooks are not. */
  readonly pod: Pod | undefined;
  /** Seconds from now to SIGKILL; 0 or less: no hooks, no waiting. */
  readonly graceSeconds: number;
  readonly cause: Cause;
  /** The text of each container's Event; default: the container's own, or that it is being stopped. */
  readonly eventMessage?: string;
}

export interface ContainerStop extends StopTarget {
  readonly container: ToldContainer;
  /** Its sandbox's addresses, for httpGet hooks. */
  readonly sandboxIPs: readonly string[];
}

/** The stop of one container, from its request on. */
interface Stop extends ContainerStop {
  /** Monotonic ms. */
  readonly killAtMs: number;
  readonly signal: AbortSignal;
}

/** Stops pods and containers, with their preStop hooks (upstream: killPod, killContainer). */
export class PodStopper {
  readonly #effects: StopEffects;
  readonly #parts: StopperParts;

  constructor(effects: StopEffects, parts: StopperParts) {
    this.#effects = effects;
    this.#parts = parts;
  }

  /**
   * Stops all containers of a pod, removes those that never ran, and then stops its sandboxes. All preStop hooks start
   * immediately and count towards the grace period; a sidecar is stopped after those that must exit before it ({@link
   * terminationOrder}). Whatever still waits at the end of the grace period gets its stop signal then, and SIGKILL
   * minimumGraceSeconds later. May be called again while a hook of an earlier call runs.
   * @throws AggregateError with every failure; the other containers are stopped
   */
  async stopPod(target: StopTarget, remains: Remains, signal: AbortSignal): Promise<void> {
    const { ref, cause } = target;
    const { containers, unstarted, sandboxes } = remains;
    const sandboxIPs = sandboxes.flatMap(({ ips }) => ips);
    const stopOf = (container: ContainerStatus): Stop => {
      const graceSeconds = Math.min(remains.graces?.get(container.id) ?? target.graceSeconds, target.graceSeconds);
      return { ...target, graceSeconds, killAtMs: this.#killAtMs(graceSeconds), container, sandboxIPs, signal };
    };
    const order = terminationOrder(target.pod, new Set(containers.map(({ name }) => name)));
    const stops = containers.map((container) => ({ container, stopped: Promise.withResolvers<void>() }));
    const turnOf = async (name: string): Promise<void> => {
      const before = order.get(name) ?? [];
      await Promise.all(
        stops.filter(({ container }) => before.includes(container.name)).map(({ stopped }) => stopped.promise),
      );
    };
    await settleAll(
      `stopping the containers of pod ${ref.name}`,
      stops.map(async ({ container, stopped }) => {
        signal.throwIfAborted();
        this.#tell(target, container);
        const stop = stopOf(container);
        await this.#preStop(stop);
        if (order.has(container.name)) {
          await this.#untilGraceEnds(
            stop,
            `the stop order to reach container ${container.name}`,
            turnOf(container.name),
          );
        }
        await this.#stop(stop);
        stopped.resolve();
      }),
    );
    await settleAll(
      `removing never started containers of pod ${ref.name}`,
      unstarted.map((container) => this.#parts.removal.removeUnstarted(ref, container, cause, signal)),
    );
    await settleAll(
      `stopping the sandboxes of pod ${ref.name}`,
      sandboxes.map((sandbox) => this.#stopSandbox(ref, sandbox, cause, signal)),
    );
  }

  /**
   * Stops one container: preStop hook, stop signal, SIGKILL at the end of the grace period. A missing container counts
   * as stopped.
   */
  async stopContainer(target: ContainerStop, signal: AbortSignal): Promise<void> {
    const stop: Stop = { ...target, killAtMs: this.#killAtMs(target.graceSeconds), signal };
    signal.throwIfAborted();
    this.#tell(target, target.container);
    await this.#preStop(stop);
    await this.#stop(stop);
  }

  #killAtMs(graceSeconds: number): number {
    return this.#effects.clock.monotonic() + graceSeconds * 1000;
  }

  #tell({ ref, cause, eventMessage }: StopTarget, container: ToldContainer): void {
    const told = eventMessage === undefined ? container : { ...container, eventMessage };
    tellKill({ journal: this.#effects.journal, preStops: this.#parts.preStops }, ref, told, cause);
  }

  /** Starts the hook, unless already started, and waits for it within the grace period. */
  async #preStop(stop: Stop): Promise<void> {
    const { ref, container, cause, graceSeconds } = stop;
    if (graceSeconds <= 0) return;
    const { preStop: handler, ports } = await this.#hookOf(stop);
    if (handler === undefined) return;
    const { hooks, preStops, objects, node } = this.#parts;
    const { journal } = this.#effects;
    const { id, name } = container;
    const ips = podIPs(node, stop.pod, stop.sandboxIPs);
    const subject = { pod: ref, name, id, ports, ips, hide: hideSecrets(objects, stop.pod) };
    const hook = { container: subject, handler, cause };
    const ended = preStops.once(id, (signal) => runPreStop(hooks, journal, hook, signal));
    if (await this.#untilGraceEnds(stop, `preStop hook of container ${name}`, ended)) return;
    journal.record({
      kind: "observation",
      what: "PreStopHookOverdue",
      message: `the preStop hook of container ${name} has not ended within the grace period`,
      pod: ref,
      container: name,
      cause,
    });
  }

  async #hookOf({ pod, container: { id, name }, signal }: Stop): Promise<StoredHook> {
    const spec = pod && allContainers(pod.spec).find((container) => container.name === name);
    if (spec !== undefined) return { preStop: spec.lifecycle?.preStop, ports: spec.ports ?? [] };
    const { cri, log } = this.#effects;
    try {
      const { status } = await cri.runtime.containerStatus({ containerId: id }, { signal });
      return storedHook(status?.annotations ?? {});
    } catch (error) {
      signal.throwIfAborted();
      // A container whose status cannot be read must be stopped nevertheless.
      log.warn("cannot find the preStop hook of a container", { container: name, error: errorMessage(error) });
      return storedHook({});
    }
  }

  /** Waits for `work` within the grace period: false when that ended first. @throws the signal's reason */
  async #untilGraceEnds({ killAtMs, signal }: Stop, what: string, work: Promise<void>): Promise<boolean> {
    const { clock } = this.#effects;
    const leftMs = Math.max(0, killAtMs - clock.monotonic());
    try {
      await withDeadline(clock, what, leftMs, signal, () => work);
      return true;
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof DeadlineError) return false;
      throw error;
    }
  }

  async #stop({ ref, container, cause, killAtMs, signal }: Stop): Promise<void> {
    const { clock, cri, journal } = this.#effects;
    const { id, name } = container;
    const timeoutSeconds = stopTimeoutSeconds(killAtMs, clock.monotonic());
    const action: ActionInput = {
      what: "StopContainer",
      message: `stop container ${name} (${shortId(id)}), grace ${timeoutSeconds} s`,
      pod: ref,
      container: name,
      cause,
      data: { id, graceSeconds: timeoutSeconds },
    };
    signal.throwIfAborted();
    this.#parts.preStops.signalled(id);
    await perform(journal, clock, action, () =>
      ignoreNotFound(cri.runtime.stopContainer({ containerId: id, timeout: BigInt(timeoutSeconds) }, { signal })),
    );
    this.#parts.preStops.stopped(id);
  }

  async #stopSandbox(pod: PodRef, { id }: SandboxStatus, cause: Cause, signal: AbortSignal): Promise<void> {
    const { clock, cri, journal } = this.#effects;
    await this.#parts.teardowns.run("first", signal, async (queuedMs) => {
      const message = `stop sandbox ${shortId(id)}`;
      const action: ActionInput = { what: "StopPodSandbox", message, pod, cause, data: { id, queuedMs } };
      await perform(journal, clock, action, () =>
        ignoreNotFound(cri.runtime.stopPodSandbox({ podSandboxId: id }, { signal })),
      );
    });
  }
}
