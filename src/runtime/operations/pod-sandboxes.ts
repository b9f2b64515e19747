import type { Pod } from "../../api/pod.ts";
import type { Cause } from "../../journal/entry.ts";
import { type ActionInput, perform } from "../../journal/perform.ts";
import { gracePeriodSeconds } from "../actions/grace.ts";
import { shortId } from "../actions/sandbox-actions.ts";
import type { ObjectLookup } from "../config/environment.ts";
import { isSameRange } from "../config/id-ranges.ts";
import { userIdsOf } from "../config/namespaces.ts";
import { runtimeHandler } from "../config/pod-features.ts";
import { resolverOf } from "../config/pod-resolver.ts";
import { generateSandboxConfig, type SandboxConfig } from "../config/sandbox-config.ts";
import type { Effects } from "../effects.ts";
import type { NodeContext } from "../node-context.ts";
import { podRef } from "../pod-ref.ts";
import type { UserNamespaceProvider } from "../providers.ts";
import { inspectSandbox } from "../status/inspect.ts";
import type { PodStatus, SandboxStatus } from "../status/pod-status.ts";
import { remainsOf } from "../status/remains.ts";
import type { StartSandbox } from "./container-start.ts";
import { patiently } from "./patiently.ts";
import type { PodStopper } from "./pod-stopper.ts";
import { type FailingStep, tellFailure } from "./tell-failure.ts";

export interface SandboxParts {
  readonly stopper: PodStopper;
  readonly objects: Pick<ObjectLookup, "runtimeHandler">;
  readonly userNamespaces: Pick<UserNamespaceProvider, "namespaceOf">;
  readonly node: NodeContext;
}

/** Which sandbox to create, and why. */
export interface SandboxCreation {
  readonly attempt: number;
  readonly cause: Cause;
  /** How long the start waited for its slot. */
  readonly queuedMs: number;
  /** Groups that own files of the pod's volumes. */
  readonly volumeGroups: readonly number[];
}

/** Creates pod sandboxes. */
export class PodSandboxes {
  readonly #effects: Effects;
  readonly #parts: SandboxParts;

  constructor(effects: Effects, parts: SandboxParts) {
    this.#effects = effects;
    this.#parts = parts;
  }

  /** @throws ContainerConfigError, CriError, FileError, or the signal's reason */
  async create(pod: Pod, creation: SandboxCreation, signal: AbortSignal): Promise<StartSandbox> {
    const { clock, cri, journal } = this.#effects;
    const { attempt, cause, queuedMs, volumeGroups } = creation;
    const ref = podRef(pod);
    const misconfigured: FailingStep = { what: "SandboxConfigError", pod: ref, cause };
    const request = await tellFailure(journal, misconfigured, async () => {
      return {
        config: await this.#config(pod, attempt, volumeGroups),
        runtimeHandler: runtimeHandler(pod, this.#parts.objects),
      };
    });
    const action: ActionInput = {
      what: "RunPodSandbox",
      message: attempt === 0 ? "create the sandbox" : `create the sandbox, attempt ${attempt}`,
      pod: ref,
      cause,
      data: { attempt, queuedMs },
    };
    signal.throwIfAborted();
    const { podSandboxId } = await perform(journal, clock, action, () =>
      patiently(clock, "a sandbox", signal, (options) => cri.runtime.runPodSandbox(request, options)),
    );
    const look = (): Promise<SandboxStatus> => inspectSandbox(cri, podSandboxId, signal);
    const { ips } = await tellFailure(journal, { what: "FailedPodSandBoxStatus", pod: ref, cause }, look, signal);
    await tellFailure(journal, misconfigured, async () => {
      if (ips.length > 0 || pod.spec.hostNetwork === true) return;
      throw new Error(`sandbox ${shortId(podSandboxId)} got no IP address from the network plugin`);
    });
    return { id: podSandboxId, config: request.config, ips };
  }

  /**
   * The existing sandbox, for containers that start in it.
   * @throws Error when its user namespace is not the pod's; it is then stopped, and recreated by the next decision
   */
  async current(pod: Pod, status: PodStatus, sandbox: SandboxStatus, signal: AbortSignal): Promise<StartSandbox> {
    // Those of its creation, which later containers do not depend on.
    const config = await this.#config(pod, sandbox.attempt, []);
    const ids = userIdsOf(config.linux?.securityContext?.namespaceOptions);
    // Its containers would run with the sandbox's IDs, and not own their files.
    if (ids !== undefined && sandbox.userIds !== undefined && !isSameRange(ids, sandbox.userIds)) {
      const message = `sandbox ${shortId(sandbox.id)} has a different user namespace from its pod's`;
      const cause: Cause = { code: "SandboxUsersDiffer", message };
      const target = { ref: podRef(pod), pod, graceSeconds: gracePeriodSeconds(pod), cause };
      await this.#parts.stopper.stopPod(target, remainsOf(status), signal);
      throw new Error(`${message}: it is recreated`);
    }
    return { id: sandbox.id, ips: sandbox.ips, config };
  }

  async #config(pod: Pod, attempt: number, volumeGroups: readonly number[]): Promise<SandboxConfig> {
    const { node, userNamespaces } = this.#parts;
    const { files, journal } = this.#effects;
    const userNamespace = await userNamespaces.namespaceOf(pod);
    return generateSandboxConfig(pod, attempt, {
      podLogsRoot: node.podLogsRoot,
      clusterDomain: node.clusterDomain,
      dns: await resolverOf({ files, journal, node }, pod),
      cgroupDriver: node.cgroupDriver,
      cgroupRoot: node.cgroupRoot,
      resources: node.resources,
      volumeGroups,
      ...(userNamespace && { userNamespace }),
    });
  }
}
