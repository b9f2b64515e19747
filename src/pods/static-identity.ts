import { fullName } from "../api/full-name.ts";
import { isStaticPod } from "../api/pod-kind.ts";
import type { Pod } from "../api/pod.ts";
import { errorMessage } from "../base/errors.ts";
import { type PodUid, podUid } from "../base/ids.ts";
import type { StartUp } from "../base/start-up.ts";
import type { Recorder } from "../journal/entry.ts";
import type { PodCache } from "../pleg/pod-cache.ts";
import type { Pleg } from "../pleg/pleg.ts";
import type { Logger } from "../ports/log.ts";
import { Annotation } from "../runtime/config/labels.ts";
import { podRef } from "../runtime/pod-ref.ts";
import type { PodStatus } from "../runtime/status/pod-status.ts";
import type { StartedStaticPods } from "./started-static-pods.ts";
import type { PodChange } from "./pod-change.ts";

export interface StaticIdentityDependencies {
  readonly startUp: Pick<StartUp, "when">;
  readonly pleg: Pick<Pleg, "podsNamed" | "isListed">;
  /** UIDs that podwright assigned in this or an earlier run. */
  readonly started: Pick<StartedStaticPods, "has" | "add" | "keepOnly">;
  readonly cache: Pick<PodCache, "getNewerThan">;
  readonly journal: Recorder;
  readonly log: Logger;
  /** True when the runtime's containers match those of `pod`, by name and hash. */
  readonly matchesRunning: (pod: Pod, status: PodStatus) => boolean;
  /** Time limit of an inspection of the running pod. */
  readonly observeLimitMs: number;
}

/** The format of computed UIDs; one written into a manifest hardly looks like this. */
const computedUid = /^[0-9a-f]{32}$/u;

/**
 * Keeps the UID under which a static pod without its own UID already runs. A computed UID depends on the kubelet that
 * computes it (another kind or version), and a pod that matches its manifest must not restart because of that. A pod
 * that already ran in this run does not qualify: its manifest has changed, beyond what the hash shows.
 *
 * Changes pass in order; the first static pod waits for the first relist, others do not.
 */
export class StaticIdentity {
  readonly #deps: StaticIdentityDependencies;
  #next: (change: PodChange) => void = () => {};
  /** Adopted UIDs by the computed ones. */
  readonly #adopted = new Map<PodUid, PodUid>();
  /** UIDs desired in this run and present in the runtime, by full name. */
  readonly #ownUids = new Map<string, ReadonlySet<PodUid>>();
  #pruned = false;
  #turn: Promise<void> = Promise.resolve();
  /** Changes waiting in order: while there are none, a change passes immediately. */
  #queued = 0;

  constructor(deps: StaticIdentityDependencies) {
    this.#deps = deps;
  }

  /** @param next receives the changes with the resolved UIDs. To be called once, before the first change. */
  connect(next: (change: PodChange) => void): void {
    this.#next = next;
  }

  handle(change: PodChange): void {
    const known = this.#adopted.has(change.pod.metadata.uid);
    const mayAdopt = change.op === "add" && isStaticPod(change.pod) && computedUid.test(change.pod.metadata.uid);
    if (this.#queued === 0 && !mayAdopt) {
      this.#pass(change);
      return;
    }
    this.#queued++;
    this.#turn = this.#turn.then(async () => {
      if (mayAdopt && !known) await this.#adopt(change.pod);
      if (mayAdopt && !this.#adopted.has(change.pod.metadata.uid)) {
        await this.#deps.started.add(change.pod.metadata.uid);
      }
      this.#queued--;
      this.#pass(change);
    });
  }

  /** False while a change waits: its pod is not known elsewhere yet. */
  get settled(): boolean {
    return this.#queued === 0;
  }

  /** The wanted pod as it runs: under the UID that it has kept, if it has, with the annotation config.hash of that. */
  resolved(pod: Pod): Pod {
    const uid = this.#adopted.get(pod.metadata.uid);
    if (uid === undefined) return pod;
    // As upstream always the UID: another kubelet's mirror pod refers to the pod by it, and kubectl finds its Events so.
    const annotations = { ...pod.metadata.annotations, [Annotation.configHash]: uid };
    return { ...pod, metadata: { ...pod.metadata, uid, annotations } };
  }

  #pass(change: PodChange): void {
    const pod = this.resolved(change.pod);
    if (change.op === "remove") this.#adopted.delete(change.pod.metadata.uid);
    else this.#own(fullName(pod.metadata), pod.metadata.uid);
    this.#next({ ...change, pod });
  }

  #own(name: string, uid: PodUid): void {
    this.#ownUids.set(name, new Set([...(this.#ownUids.get(name) ?? []), uid]));
  }

  /** Once per run: records of removed pods are obsolete. */
  async #prune(): Promise<void> {
    if (this.#pruned) return;
    this.#pruned = true;
    await this.#deps.started.keepOnly((uid) => this.#deps.pleg.isListed(podUid(uid)));
  }

  /** Never rejects: a pod that cannot be inspected is not adopted. */
  async #adopt(pod: Pod): Promise<void> {
    const { startUp, pleg, journal, matchesRunning, started } = this.#deps;
    await startUp.when("listed");
    await this.#prune();
    const rivals = pleg.podsNamed(pod.metadata.namespace, pod.metadata.name);
    // The pod of the computed UID may have ended, and another kubelet may run it under another UID since.
    const before = rivals.includes(pod.metadata.uid) ? await this.#lookAt(pod.metadata.uid) : noPod;
    if (before === undefined || isUp(before)) return;
    const name = fullName(pod.metadata);
    const own = this.#ownUids.get(name) ?? new Set();
    this.#ownUids.set(name, own.intersection(new Set(rivals)));
    const found: PodUid[] = [];
    for (const uid of rivals.filter((rival) => rival !== pod.metadata.uid && !own.has(rival))) {
      // Podwright computes the same UID for the same manifest: another one means that the manifest has changed.
      if (await started.has(uid)) continue;
      const status = await this.#lookAt(uid);
      if (status !== undefined && isUp(status) && matchesRunning(pod, status)) found.push(uid);
    }
    const [uid] = found;
    if (uid === undefined || found.length > 1) return;
    this.#adopted.set(pod.metadata.uid, uid);
    journal.record({
      kind: "decision",
      what: "PodAdopted",
      message: `the static pod already runs under UID ${uid} and keeps it`,
      pod: { ...podRef(pod), uid },
      cause: { code: "MatchingSandbox", message: "a ready sandbox with the same pod name and containers exists" },
    });
  }

  /** Undefined when the runtime does not report it. */
  async #lookAt(uid: PodUid): Promise<PodStatus | undefined> {
    const { cache, log, observeLimitMs } = this.#deps;
    try {
      return await cache.getNewerThan(uid, 0, observeLimitMs);
    } catch (error) {
      log.warn("cannot inspect the running pod of a static pod", { uid, error: errorMessage(error) });
      return undefined;
    }
  }
}

type Sandboxes = Pick<PodStatus, "sandboxes">;
const noPod: Sandboxes = { sandboxes: [] };

function isUp({ sandboxes }: Sandboxes): boolean {
  return sandboxes[0]?.ready === true;
}
