import type { EphemeralContainer } from "../api/container.ts";
import type { Pod } from "../api/pod.ts";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import type { PodUid } from "../base/ids.ts";
import type { EvictionManager } from "../eviction/manager.ts";
import type { Cause, JournalEntry, PodRef } from "../journal/entry.ts";
import type { Journal } from "../journal/journal.ts";
import type { Kubelet } from "../kubelet/kubelet.ts";
import type { Clock } from "../ports/clock.ts";
import type { Random } from "../ports/random.ts";
import type {
  AppliedPod,
  ClaimRemoval,
  ClaimView,
  FreeVolumeView,
  ApplyRequest,
  DebugContainer,
  DebugRequest,
  LocalApi,
  EvictionConfirmation,
  EvictionPreview,
  GarbageReport,
  Health,
  HealthCheck,
  Plan,
  PodSelector,
  PodView,
} from "../server/local-api.ts";
import { volumeHoldout } from "../server/holdout.ts";
import { isSelectedBy, mendManifest, noSuchPod, rejectedAs } from "../server/pod-selector.ts";
import type { RejectedManifest } from "../sources/static-manifests.ts";
import { originOf } from "../server/pod-words.ts";
import type { PodMux } from "../sources/mux.ts";
import type { RunSource } from "../sources/run-source.ts";
import type { RunClaims } from "../claims/run-claims.ts";
import type { NodeCollection } from "./node-collection.ts";
import { claimChecks } from "./claim-checks.ts";
import { planPods } from "./plan-pods.ts";
import { type KnownStorage, type VolumePlans, volumePlans } from "./plan-volumes.ts";
import { podView } from "./pod-view.ts";

export interface ServedNode {
  readonly version: string;
  readonly pid: number;
  /** `containerd 2.1.9` */
  readonly runtime: string;
  readonly runtimeEndpoint: string;
  readonly record: string | undefined;
  readonly nodeName: string;
  readonly podLogsRoot: string;
}

export interface NodeLocalApiDependencies {
  readonly clock: Clock;
  readonly random: Random;
  readonly journal: Journal;
  readonly kubelet: Kubelet;
  readonly mux: PodMux;
  readonly garbage: NodeCollection;
  /** Of what is around its kubelet: its configuration, its pressure, its cluster. */
  readonly surroundings: () => Health["checks"];
  /** What is wrong with manifests that are not taken. */
  readonly rejectedManifests: () => readonly RejectedManifest[];
  readonly evictions: EvictionManager | undefined;
  /** Undefined on a node that takes no pods from `podwright run`. */
  readonly run: RunSource | undefined;
  readonly claims: RunClaims | undefined;
  /** The running pods that a pod serves as a CSI driver. */
  readonly served: (pod: Pod) => readonly PodRef[];
  /** Ends the process, after its answer has gone out. */
  readonly exit: () => void;
}

/** Answers requests of the command line about a node, from its kubelet, its `run` source and its journal. */
export class NodeLocalApi implements LocalApi {
  readonly #deps: NodeLocalApiDependencies;
  readonly #identity: ServedNode;
  readonly #startedAt: number;

  constructor(deps: NodeLocalApiDependencies, identity: ServedNode) {
    this.#deps = deps;
    this.#identity = identity;
    this.#startedAt = deps.clock.now();
  }

  health(): Health {
    const { kubelet, surroundings } = this.#deps;
    const checks = [...kubelet.health(), ...surroundings(), this.#journalCheck(), ...this.#ownChecks()];
    const { version, pid, runtime, runtimeEndpoint, record } = this.#identity;
    return {
      healthy: checks.every(({ ok }) => ok),
      version,
      pid,
      runtime,
      runtimeEndpoint,
      ...(record !== undefined && { record }),
      startedAt: this.#startedAt,
      journalSeq: this.#deps.journal.lastSeq,
      knowsAllPods: this.#deps.kubelet.startUp.has("allKnown"),
      ...this.#unlisted(),
      checks,
    };
  }

  /**
   * Without a running pod's manifest the engine's knowledge stays incomplete: clients must know which pods are
   * concerned.
   */
  #unlisted(): Pick<Health, "unlisted"> {
    const { kubelet, mux } = this.#deps;
    if (!kubelet.startUp.has("listed")) return {};
    const listed = new Set(kubelet.pods.list().map(({ view }) => view.ref.uid));
    const wanted = mux.pods().map(({ pod }) => kubelet.resolved(pod).metadata.uid);
    const running = [...kubelet.listing.listed, ...wanted];
    return { unlisted: [...new Set(running).difference(listed)] };
  }

  async apply(request: ApplyRequest): Promise<readonly AppliedPod[]> {
    return await this.#runSource().apply(request);
  }

  async plan(request: ApplyRequest | undefined): Promise<Plan> {
    const { clock, kubelet, mux } = this.#deps;
    const preview = request === undefined ? { pods: [], objects: [] } : this.#runSource().preview(request);
    const wanted = mux.pods();
    const plans = await kubelet.workers.plans();
    const volumes = this.#volumePlans(request?.storage ?? [], preview.objects);
    return {
      pods: planPods(plans, preview, wanted, clock.now() - clock.monotonic(), volumes),
      objects: preview.objects,
    };
  }

  #volumePlans(given: KnownStorage["given"], objects: KnownStorage["objects"]): VolumePlans {
    const { clock, claims, journal, kubelet } = this.#deps;
    const pods = kubelet.pods.list().flatMap(({ view: { pod } }) => (pod === undefined ? [] : [pod]));
    return volumePlans({
      storage: claims && { given, objects, claims: claims.views(), freeVolumes: claims.freeVolumes() },
      views: this.pods(),
      pods: new Map(pods.map((pod) => [pod.metadata.uid, pod])),
      entries: (uid) => journal.entries({ pod: { uid } }),
      now: clock.now(),
    });
  }

  claims(): readonly ClaimView[] {
    return this.#deps.claims?.views() ?? [];
  }

  freeVolumes(): readonly FreeVolumeView[] {
    return this.#deps.claims?.freeVolumes() ?? [];
  }

  async removeClaim(namespace: string, name: string): Promise<ClaimRemoval> {
    const { claims, journal } = this.#deps;
    if (claims === undefined) throw new PodwrightError(ExitCode.badInput, "this node keeps no claims");
    const message = `a user requested the removal of claim ${namespace}/${name}`;
    const entry = journal.record({ kind: "input", what: "ClaimRemovalRequested", message });
    return await claims.remove(namespace, name, { code: "ClaimRemovalRequested", message, entry });
  }

  #runSource(): RunSource {
    if (this.#deps.run !== undefined) return this.#deps.run;
    throw new PodwrightError(
      ExitCode.badInput,
      "the kubelet of this state directory does not accept pods of podwright run",
      {
        remedy: "put the manifest into its staticPodPath, or use another --state-dir",
      },
    );
  }

  pods(): readonly PodView[] {
    const { clock, journal, kubelet } = this.#deps;
    const ignored = Map.groupBy(this.#deps.mux.contests(), ({ uid }) => uid);
    const { served } = this.#deps;
    const node = (): readonly JournalEntry[] => journal.entries({ kinds: ["note"] });
    const holdout = (uid: PodUid): ReturnType<typeof volumeHoldout> =>
      volumeHoldout({ entries: journal.entries({ pod: { uid } }), startSeq: journal.startSeq }, node);
    const context = { ...this.#identity, wallOffsetMs: clock.now() - clock.monotonic(), served, ignored, holdout };
    return kubelet.pods
      .list()
      .map((pod) => podView(pod, context))
      .filter((view) => view !== undefined)
      .toSorted((a, b) => compare(a.namespace, b.namespace) || compare(a.name, b.name) || a.createdAt - b.createdAt);
  }

  pod(selector: PodSelector): PodView {
    const found = this.pods().filter((pod) => isSelectedBy(pod, selector));
    const [first, second] = found;
    if (first === undefined) throw this.#noSuchPod(selector, this.pods());
    // While a pod is being replaced, its name means the one that is to stay.
    const staying = found.filter((pod) => pod.state === "syncing");
    if (second !== undefined && new Set(found.map((pod) => pod.namespace)).size > 1) throw ambiguous(selector, found);
    return staying[0] ?? first;
  }

  async stop(selector: PodSelector, graceSeconds: number | undefined): Promise<PodView> {
    const { kubelet, run, journal } = this.#deps;
    const view = this.pod(selector);
    if (run === undefined || view.source !== "run") {
      throw new PodwrightError(ExitCode.badInput, `pod ${view.name} ${originOf(view.source)}`, {
        remedy: "remove it there; otherwise it would be started again",
      });
    }
    const grace = graceSeconds === undefined ? "its own grace period" : `a grace period of ${graceSeconds} s`;
    const entry = journal.record({
      kind: "input",
      what: "StopRequested",
      message: `stop of the pod requested, with ${grace}`,
      pod: { namespace: view.namespace, name: view.name, uid: view.uid },
    });
    const removed = await run.remove(view, graceSeconds);
    const pod = kubelet.pods.get(view.uid);
    if (!removed && graceSeconds !== undefined && pod !== undefined) {
      const cause: Cause = {
        code: "StopRequested",
        message: `stop requested, with a grace period of ${graceSeconds} s`,
        entry,
      };
      kubelet.handle({ op: "remove", pod, cause, graceSeconds });
    }
    return this.pods().find((other) => other.uid === view.uid) ?? view;
  }

  retry(selector: PodSelector): PodView {
    const { kubelet, journal } = this.#deps;
    const view = this.pod(selector);
    const { namespace, name, uid, phase } = view;
    // A record of it would cover why the pod ended.
    if (phase === "Succeeded" || phase === "Failed") return view;
    const message = "a user requested an immediate retry";
    const entry = journal.record({ kind: "input", what: "RetryRequested", message, pod: { namespace, name, uid } });
    kubelet.workers.retryNow(uid, { code: "RetryRequested", message: "a user requested an immediate retry", entry });
    return view;
  }

  async previewGarbage(signal: AbortSignal): Promise<GarbageReport> {
    return await this.#deps.garbage.preview(signal);
  }

  async collectGarbage(signal: AbortSignal): Promise<GarbageReport> {
    return await this.#deps.garbage.collect(signal);
  }

  async debug(selector: PodSelector, { image, target, command }: DebugRequest): Promise<DebugContainer> {
    const { namespace, name, uid, source } = this.pod(selector);
    const manifest = source === "run" ? this.#deps.run?.manifest(namespace, name) : undefined;
    if (manifest?.metadata.uid !== uid) {
      const problem = source === "run" ? "is being stopped" : originOf(source);
      throw new PodwrightError(ExitCode.badInput, `pod ${name} ${problem}`, {
        remedy:
          source === "api"
            ? "use kubectl debug"
            : "ephemeral containers can only be added to running pods of podwright run",
      });
    }
    const { containers, initContainers = [], ephemeralContainers = [] } = manifest.spec;
    const model = [...containers, ...initContainers].find((each) => target === undefined || each.name === target);
    const suffix = Buffer.from(this.#deps.random.bytes(3)).toString("hex");
    const container: EphemeralContainer = {
      name: `debugger-${suffix}`,
      image: image ?? model?.image,
      ...(image === undefined && { imagePullPolicy: model?.imagePullPolicy }),
      ...(target !== undefined && { targetContainerName: target }),
      ...(command.length > 0 && { command: [...command] }),
    };
    const spec = { ...manifest.spec, ephemeralContainers: [...ephemeralContainers, container] };
    await this.apply({ pods: [{ ...manifest, spec }], configMaps: [], secrets: [] });
    return { pod: { namespace, name, uid }, container: container.name };
  }

  podRefs(selector: PodSelector): readonly PodRef[] {
    const refs = new Map(
      [...this.#deps.journal.pods(), ...this.pods()].map(({ namespace, name, uid }) => [uid, { namespace, name, uid }]),
    );
    const found = [...refs.values()].filter((ref) => isSelectedBy(ref, selector));
    if (found.length === 0) throw this.#noSuchPod(selector, [...refs.values()]);
    return found;
  }

  entries(filter: { readonly uid?: PodUid; readonly sinceSeq?: number }): readonly JournalEntry[] {
    return this.#deps.journal.entries(journalFilter(filter));
  }

  follow(
    filter: { readonly uid?: PodUid; readonly sinceSeq?: number },
    signal: AbortSignal,
  ): AsyncIterable<JournalEntry> {
    return this.#deps.journal.follow(journalFilter(filter), signal);
  }

  async evictionPreview(signal: string | undefined): Promise<EvictionPreview> {
    return await this.#evictions().preview(signal);
  }

  async confirmEvictions(): Promise<EvictionConfirmation> {
    const message = "a user allowed evictions by the current settings";
    const evictions = this.#evictions();
    this.#deps.journal.record({ kind: "input", what: "EvictionsConfirmed", message });
    return { waited: await evictions.confirm() };
  }

  #evictions(): EvictionManager {
    if (this.#deps.evictions !== undefined) return this.#deps.evictions;
    throw new PodwrightError(ExitCode.badInput, "this node evicts no pods");
  }

  async shutdown(mode: "keep" | "stop"): Promise<void> {
    const running = mode === "stop" ? this.pods().filter((pod) => pod.source === "run") : [];
    await Promise.all(running.map((pod) => this.stop(pod.uid, undefined)));
    // Stopped pods end the engine when the last is gone.
    if (running.length === 0) this.#deps.exit();
  }

  /** It may be wanted by a manifest that is not taken. */
  #noSuchPod(selector: PodSelector, pods: readonly PodRef[]): PodwrightError {
    const rejected = rejectedAs(selector, this.#deps.rejectedManifests(), this.#identity.nodeName);
    return noSuchPod(selector, pods, rejected);
  }

  /** Of manifests and claims. */
  #ownChecks(): Health["checks"] {
    const wanted = this.#deps.mux.pods().map(({ pod }) => pod);
    return [...this.#manifestChecks(), ...claimChecks(this.#deps.claims, wanted)];
  }

  /** Rejected manifests affect no other pod, but they should be known. */
  #manifestChecks(): Health["checks"] {
    const check = (detail: string, remedy: string): HealthCheck => {
      return { name: "manifests", ok: true, warning: true, detail, remedy };
    };
    return [
      ...this.#deps.rejectedManifests().map(({ message }) => check(message, mendManifest)),
      ...(this.#deps.run?.unreadable ?? []).map((message) => check(message, mendStored)),
      ...this.#deps.mux.contests().map(({ place, ignored }) => {
        return check(`${ignored} is ignored: ${place} has a pod of the same name`, "rename or remove one of them");
      }),
    ];
  }

  #journalCheck(): Health["checks"][number] {
    const health = this.#deps.journal.diskHealth;
    const problem = health === undefined ? "in memory only" : health.error;
    return { name: "journal", ok: problem === undefined, detail: problem ?? "written to disk" };
  }
}

const mendStored = "correct or remove it; its pod is not managed until podwright restarts";

function journalFilter({ uid, sinceSeq }: { readonly uid?: PodUid; readonly sinceSeq?: number }): {
  pod?: { uid: PodUid };
  withNode?: boolean;
  sinceSeq?: number;
} {
  return {
    ...(uid === undefined ? {} : { pod: { uid }, withNode: true }),
    ...(sinceSeq === undefined ? {} : { sinceSeq }),
  };
}

function ambiguous(selector: string, pods: readonly PodView[]): PodwrightError {
  const names = pods.map((pod) => `${pod.namespace}/${pod.name}`).join(", ");
  return new PodwrightError(ExitCode.badInput, `${selector} matches several pods: ${names}`, {
    remedy: "add the namespace",
  });
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
