import { isSidecar } from "../../api/all-containers.ts";
import type { Pod } from "../../api/pod.ts";
import { isStaticPod } from "../../api/pod-kind.ts";
import { restartsAfter } from "../../api/restart-policy.ts";
import type { PodStatus } from "../../api/status.ts";
import type { CauseCode } from "../../journal/vocabulary.ts";
import { tellsRejection } from "../../pods/rejection.ts";
import { isOwnDisruption } from "../../status/conditions.ts";
import { containerStatusUnknown } from "../../status/container-statuses.ts";
import type { SimEntry } from "../life/node.ts";
import { dataText } from "./entry-data.ts";
import { endingOf } from "./endings.ts";
import type { Break, Rule, Scene } from "./rule.ts";

/** Why the node ends pods that it had admitted. Their exit codes count, other than at the end of a deadline. */
const codes: ReadonlySet<CauseCode> = new Set(["Preempting", "Evicted", "Terminated"]);
/** With limits of its own a pod is evicted without a disruption. */
const disrupting: ReadonlySet<CauseCode> = new Set(["Preempting", "Terminated"]);

const ruleName = "exit codes decide about pods that the node ends";

/**
 * A pod that the node ends has succeeded if all of its containers exit with 0, and needs no reason. Otherwise it has
 * failed, with the reason.
 */
export class CutShort implements Rule {
  readonly #scene: Scene;
  readonly #broken: Break;
  /**
   * Pods of which a container was not running when they were ended, as far as podwright had seen: if it waited for its
   * restart, they have failed.
   */
  readonly #idle = new Set<string>();

  constructor(scene: Scene, broken: Break) {
    this.#scene = scene;
    this.#broken = broken;
  }

  entry(entry: SimEntry): void {
    const { what, pod: ref } = entry;
    const pod = this.#scene.pods.get(ref?.uid ?? "");
    if (pod === undefined) return;
    if (what === "PodTerminating") this.#ends(pod);
    if (what === "PodPhaseChanged") this.#phaseChanged(pod, entry);
  }

  reborn(uid: string): void {
    this.#idle.delete(uid);
  }

  #ends(pod: Pod): void {
    const { uid } = pod.metadata;
    const { world, node } = this.#scene;
    const known = node.pods().find(({ view }) => view.ref.uid === uid);
    const waits = (name: string): boolean => {
      const told = known?.status?.containerStatuses?.find((status) => status.name === name);
      return told?.state.waiting !== undefined || world.running(uid, name) === undefined;
    };
    const isIdle = pod.spec.containers.some((container) => restartsAfter(pod, container, 0) && waits(container.name));
    if (isIdle) this.#idle.add(uid);
  }

  #phaseChanged(pod: Pod, entry: SimEntry): void {
    const { uid } = pod.metadata;
    const known = this.#scene.node.pods().find(({ view }) => view.ref.uid === uid);
    const cause = known && endingOf(known)?.cause;
    const status = known?.status;
    if (cause === undefined || status === undefined || tellsRejection(cause.message) || !codes.has(cause.code)) return;
    // Past its deadline it has failed in any case.
    if (pod.spec.activeDeadlineSeconds !== undefined) return;
    const to = dataText(entry, "to");
    if (to === "Succeeded") this.#succeeded(pod, status, dataText(entry, "from"));
    else if (to === "Failed") this.#failed(pod, status, cause.code);
    else return;
    const isTold = (status.conditions ?? []).some(isOwnDisruption);
    if (disrupting.has(cause.code) && !isTold) this.#broken(ruleName, `${uid} ends without DisruptionTarget`);
  }

  /** @param from empty: an earlier run had seen its end, of which there may be nothing left */
  #succeeded({ metadata: { uid } }: Pod, status: PodStatus, from: string): void {
    if (status.reason !== undefined) this.#broken(ruleName, `${uid} has succeeded, and says ${status.reason}`);
    const ends = endsOf(status);
    if (from === "" || ends.every((end) => end === 0)) return;
    this.#broken(ruleName, `${uid} has succeeded, and its containers ended with ${ends.join()}`);
  }

  #failed(pod: Pod, status: PodStatus, code: CauseCode): void {
    const { uid } = pod.metadata;
    if (status.reason !== code) this.#broken(ruleName, `${uid} has failed for ${code}, and says ${status.reason}`);
    if (this.#idle.has(uid) || !hasEndedWell(pod, status)) return;
    this.#broken(ruleName, `${uid} has failed, and all of its containers ended with 0`);
  }
}

function endsOf({ containerStatuses = [] }: PodStatus): readonly (number | string)[] {
  return containerStatuses.map(({ state: { terminated } }) => terminated?.exitCode ?? "nothing");
}

/** A static pod that restarts after that has not ended for the cluster, and so it fails. */
function hasEndedWell(pod: Pod, status: PodStatus): boolean {
  const { containers, initContainers = [] } = pod.spec;
  if (isStaticPod(pod) && containers.some((container) => restartsAfter(pod, container, 0))) return false;
  const init = new Set(initContainers.filter((container) => !isSidecar(container)).map(({ name }) => name));
  const isInitialized = (status.initContainerStatuses ?? []).every(({ name, state }) => {
    // A sidecar that never ran keeps the others from running.
    return init.has(name)
      ? state.terminated?.exitCode === 0
      : state.terminated !== undefined && state.terminated.reason !== containerStatusUnknown;
  });
  const ends = endsOf(status);
  return isInitialized && ends.length > 0 && ends.every((end) => end === 0);
}
