import type { Pod } from "../../api/pod.ts";
import { errorMessage } from "../../base/errors.ts";
import type { ContainerId } from "../../base/ids.ts";
import type { Cause } from "../../journal/entry.ts";
import type { ContainerToStart } from "../actions/container-decision.ts";
import { containerGraceSeconds } from "../actions/grace.ts";
import type { ObjectLookup } from "../config/environment.ts";
import { hideSecrets } from "../config/hidden-secrets.ts";
import { podIPs } from "../config/pod-ips.ts";
import type { Effects } from "../effects.ts";
import type { NodeContext } from "../node-context.ts";
import { podRef } from "../pod-ref.ts";
import type { HookRunner } from "./hooks.ts";
import type { PodStopper } from "./pod-stopper.ts";
import { StartError } from "./start-error.ts";

export interface PostStartParts {
  readonly hooks: HookRunner;
  readonly stopper: PodStopper;
  readonly objects: Pick<ObjectLookup, "secret">;
  readonly node: Pick<NodeContext, "hostIPs">;
}

/** The started instance. */
export interface StartedContainer {
  readonly pod: Pod;
  readonly start: ContainerToStart;
  readonly id: ContainerId;
  readonly sandboxIPs: readonly string[];
}

type PostStartEffects = Pick<Effects, "clock" | "journal" | "log">;

/** Runs postStart hooks. A container whose hook fails is stopped. */
export class PostStarts {
  readonly #effects: PostStartEffects;
  readonly #parts: PostStartParts;

  constructor(effects: PostStartEffects, parts: PostStartParts) {
    this.#effects = effects;
    this.#parts = parts;
  }

  /** @throws StartError when the hook failed; the container is stopped by then */
  async run(started: StartedContainer, signal: AbortSignal): Promise<void> {
    const { pod, id, sandboxIPs } = started;
    const { container, cause } = started.start;
    const handler = container.lifecycle?.postStart;
    if (handler === undefined) return;
    const { hooks, objects, node } = this.#parts;
    const { name, ports = [] } = container;
    const ref = podRef(pod);
    const ips = podIPs(node, pod, sandboxIPs);
    try {
      const subject = { pod: ref, name, id, ports, ips, hide: hideSecrets(objects, pod) };
      await hooks.run({ kind: "postStart", container: subject, handler, cause }, signal);
    } catch (error) {
      signal.throwIfAborted();
      const message = `the postStart hook of container ${name} failed: ${errorMessage(error)}`;
      const what = "FailedPostStartHook";
      const { clock, journal } = this.#effects;
      const entry = journal.record({ kind: "observation", what, message, pod: ref, container: name, cause });
      await this.#stop(started, { code: what, message, entry }, signal);
      // It was started and has exited: its crash-loop back-off delays the next instance.
      throw new StartError("PostStartHookError", message, { cause: error, retryAtMs: clock.monotonic() });
    }
  }

  async #stop({ pod, start, id, sandboxIPs }: StartedContainer, cause: Cause, signal: AbortSignal): Promise<void> {
    const ref = podRef(pod);
    const { name } = start.container;
    const graceSeconds = containerGraceSeconds(pod, undefined);
    try {
      const container = { id, name, eventMessage: "FailedPostStartHook" };
      const stop = { ref, pod, container, sandboxIPs, graceSeconds, cause };
      await this.#parts.stopper.stopContainer(stop, signal);
    } catch (error) {
      signal.throwIfAborted();
      const about = { ...ref, container: name, error: errorMessage(error) };
      this.#effects.log.warn("cannot stop a container whose postStart hook failed", about);
    }
  }
}
