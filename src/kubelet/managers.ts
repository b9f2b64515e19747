import { isFromServer } from "../api/pod-kind.ts";
import type { PodUid } from "../base/ids.ts";
import { PatientFiles, type RecordFiles } from "../base/patient-files.ts";
import type { PodRef } from "../journal/entry.ts";
import { measureStep } from "../journal/observer.ts";
import { StartUp } from "../base/start-up.ts";
import { PodCache } from "../pleg/pod-cache.ts";
import { Pleg } from "../pleg/pleg.ts";
import { Housekeeping } from "../pods/housekeeping.ts";
import { PodLeftovers } from "../pods/leftovers.ts";
import type { Ending } from "../pods/ending.ts";
import type { CheckpointDependencies } from "../pods/pod-checkpoint.ts";
import { PodEndings } from "../pods/pod-endings.ts";
import { PodKiller } from "../pods/pod-killer.ts";
import { PodWorkers } from "../pods/pod-workers.ts";
import { StartedStaticPods } from "../pods/started-static-pods.ts";
import { StartUpGate } from "../pods/start-up-gate.ts";
import { StaticIdentity } from "../pods/static-identity.ts";
import { SyncLoop } from "../pods/sync-loop.ts";
import { UnclaimedPods } from "../pods/unclaimed-pods.ts";
import type { WorkerDependencies } from "../pods/worker-dependencies.ts";
import { ProbeManager } from "../prober/probe-manager.ts";
import { AllocationManager } from "../resources/allocation-manager.ts";
import { noPodCgroups } from "../resources/no-pod-cgroups.ts";
import { PodCgroups } from "../resources/pod-cgroups.ts";
import { QosCgroups } from "../resources/qos-cgroups.ts";
import { ResourceRecord } from "../resources/resource-record.ts";
import { type FeaturesOf, podFeatures } from "../runtime/config/pod-features.ts";
import type { SandboxesInUse } from "../runtime/config/user-namespaces.ts";
import { NodeGarbage } from "../runtime/operations/node-garbage.ts";
import { PreStopHooks } from "../runtime/operations/pre-stop-hooks.ts";
import { matchesRunning } from "../sources/static-pod.ts";
import { publishStatus } from "../status/publish.ts";
import { StatusManager } from "../status/status-manager.ts";
import { admissionChain } from "./admission-chain.ts";
import type { KubeletConfig } from "./config.ts";
import type { KubeletDependencies } from "./dependencies.ts";
import { KnownPods } from "./known-pods.ts";
import { type ActingParts, buildActing } from "./runtime.ts";

/** The managers of a kubelet that others work with. */
export interface Managers {
  readonly cache: PodCache;
  readonly pleg: Pleg;
  readonly statuses: StatusManager;
  readonly podCgroups: Pick<PodCgroups, "run">;
  readonly allocations: AllocationManager;
  readonly preStops: PreStopHooks;
  readonly acting: ActingParts;
  readonly probes: ProbeManager;
  readonly startUp: StartUp;
  readonly identity: StaticIdentity;
  readonly gate: StartUpGate;
  readonly endings: PodEndings;
  readonly workers: PodWorkers;
  readonly killer: PodKiller;
  readonly syncLoop: SyncLoop;
  readonly housekeeping: Housekeeping;
  readonly pods: KnownPods;
  readonly garbage: NodeGarbage;
}

/** The parts that know the actual and the desired state. */
interface KnowingParts extends Pick<
  Managers,
  "startUp" | "gate" | "pleg" | "cache" | "workers" | "killer" | "syncLoop" | "endings"
> {
  readonly unclaimed: UnclaimedPods;
  readonly checkpoint: CheckpointDependencies;
}

/** The first phase: builds the managers, each from existing ones. `connect` passes them the later ones. */
export function buildManagers(deps: KubeletDependencies, config: KubeletConfig): Managers {
  const { ports, cri, journal, log, observer, cluster, pressure, rooms = [] } = deps;
  const { clock, files, compression } = ports;
  const { node } = config;
  const startUp = new StartUp();
  const cache = new PodCache(clock);
  const pleg = new Pleg(
    { clock, cri, cache, startUp, journal, log: log.child({ component: "pleg" }), observer },
    config.pleg,
  );
  const statuses = new StatusManager(journal);
  const records = new PatientFiles(files, clock);
  const { podCgroups, actuated, allocations } = buildResources(deps, config, records);
  const preStops = new PreStopHooks();
  const features = featuresNow(deps);
  const own = { cri, podCgroups, actuated, preStops, features, sandboxesInUse: sandboxesIn(cache, startUp) };
  const acting = buildActing(deps, config, own);
  const { effects } = acting;
  const checkpoint = { files: records, log: effects.log, node };
  const probes = buildProbes(deps, config, { statuses, records });
  const endings = new PodEndings(checkpoint);
  const identity = buildIdentity(deps, config, { startUp, pleg, cache, records });
  const admission = admissionChain({ admission: config.admission, cluster, pressure, rooms, allocations });
  const workers = new PodWorkers({
    effects,
    observer,
    checkpoint,
    messages: { logs: { files, compression }, files, node },
    runtime: acting.runtime,
    volumes: acting.volumes,
    podCgroups,
    actuated,
    pleg,
    cache,
    probes,
    allocations,
    config: config.worker,
    reserve: admission.reserve,
    holdsStarts: () => rooms.some(({ holdsStarts = false }) => holdsStarts),
    holdsStop: (pod, ending) => latest(rooms.flatMap((room) => room.holdsStop?.(pod, ending) ?? [])),
    rivals: rivalsAmong(pleg, deps.owns),
    phaseOf: (uid) => statuses.get(uid)?.phase,
    publish: publisher(deps, config, { statuses, probes, features }),
    measured: (pod, kind, step) => measureStep(observer, clock, pod, kind, step),
    recorder: deps.recorder,
  });
  const killer = new PodKiller({ workers, journal, now: () => clock.monotonic() });
  const unclaimed = new UnclaimedPods({ checkpoint, endings, pleg, cache, workers });
  const { sourcesReady } = deps;
  const gate = new StartUpGate({ clock, startUp, pleg, identity, sourcesReady, unclaimed, checkpoint });
  const syncLoop = new SyncLoop({
    effects,
    node,
    pleg,
    workers,
    killer,
    allocations,
    admission,
    cluster,
    endings,
    unclaimed,
    hadEnded: (uid) => statuses.hadEnded(uid),
  });
  const knowing = { startUp, gate, pleg, cache, workers, killer, syncLoop, endings, unclaimed, checkpoint };
  const housekeeping = buildHousekeeping(deps, config, acting, knowing);
  const pods = new KnownPods({ workers, gate, syncLoop, statuses, cache, pleg });
  const first = { cache, pleg, statuses, podCgroups, allocations, preStops, acting, probes };
  const garbage = buildGarbage(deps, config, { acting, gate, pods, workers });
  return { ...first, startUp, identity, gate, endings, workers, killer, syncLoop, housekeeping, pods, garbage };
}

function buildResources(deps: KubeletDependencies, config: KubeletConfig, records: RecordFiles) {
  const { ports, journal, log } = deps;
  const { clock } = ports;
  const { node } = config;
  const podCgroups = buildCgroups(deps, config);
  const allocated = new ResourceRecord(records, log, `${node.rootDirectory}/allocated_pods_state`);
  const actuated = new ResourceRecord(records, log, `${node.rootDirectory}/actuated_pods_state`);
  const allocations = new AllocationManager({ clock, journal, allocated, actuated, node: node.resources });
  return { podCgroups, actuated, allocations };
}

function buildCgroups(
  { ports, journal, log: parent, observer }: KubeletDependencies,
  { cgroups: { cgroupRoot, ...settings }, node }: KubeletConfig,
): Pick<PodCgroups, keyof PodCgroups> {
  if (cgroupRoot === undefined) return noPodCgroups;
  const { clock, processes, cgroups } = ports;
  const log = parent.child({ component: "resources" });
  const { hugePageSizes } = node.resources;
  const config = { ...settings, cgroupRoot, hugePageSizes };
  const memoryProtected = observer?.memoryProtected?.bind(observer);
  const classes = new QosCgroups({ cgroups, clock, journal, log, memoryProtected }, config);
  return new PodCgroups({ cgroups, classes, processes, clock, log }, config);
}

function buildHousekeeping(
  { owns, observer }: KubeletDependencies,
  { node, housekeepingPeriodMs: periodMs }: KubeletConfig,
  { effects, holdings }: ActingParts,
  knowing: KnowingParts,
): Housekeeping {
  const { startUp, gate, pleg, cache, workers, killer, syncLoop, endings, unclaimed, checkpoint } = knowing;
  return new Housekeeping({
    effects,
    observer,
    startUp,
    gate,
    pleg,
    cache,
    workers,
    killer,
    syncLoop,
    checkpoint,
    endings,
    unclaimed,
    owns,
    leftovers: new PodLeftovers({ ...effects, node, holdings }),
    periodMs,
  });
}

function buildGarbage(
  { logOwners }: KubeletDependencies,
  { garbage, node }: KubeletConfig,
  { acting, gate, pods, workers }: Pick<Managers, "acting" | "gate" | "pods" | "workers">,
): NodeGarbage {
  const { effects, removal, collector, holdings } = acting;
  /** Not one that a full disk kept from being recorded: to the next run its containers are all that shows that it ran. */
  const terminatedBy = (uid: PodUid): Ending | undefined => {
    const state = workers.get(uid)?.state;
    return state?.kind === "terminated" && state.recorded ? state.ending : undefined;
  };
  /**
   * The ending of a pod that has ended and whose last status the API server has; other pods' endings follow from their
   * containers.
   */
  const endingOf = (uid: PodUid): Ending | undefined => {
    const { pod } = workers.get(uid) ?? {};
    return pod !== undefined && isFromServer(pod) ? terminatedBy(uid) : undefined;
  };
  return new NodeGarbage(
    {
      ...{ effects, removal, collector, holdings, node, logOwners },
      ready: () => gate.hasPassedAll(),
      pods: () => pods.observed(),
      pod: (uid) => pods.observedOf(uid),
      known: (uid) => pods.isKnown(uid),
      isOver: (uid) => endingOf(uid) !== undefined,
      isEvicted: (uid) => terminatedBy(uid)?.cause.code === "Evicted",
    },
    garbage,
  );
}

function buildProbes(
  { ports, cri, journal, log, objects, observer }: KubeletDependencies,
  { node }: KubeletConfig,
  { statuses, records }: { readonly statuses: StatusManager; readonly records: RecordFiles },
): ProbeManager {
  const { clock, random, networkProbes } = ports;
  return new ProbeManager({
    clock,
    random,
    files: records,
    commands: cri.runtime,
    networkProbes,
    journal,
    log: log.child({ component: "prober" }),
    node,
    objects,
    said: (uid) => statuses.get(uid),
    observer,
  });
}

function buildIdentity(
  { journal, log }: KubeletDependencies,
  { node, worker }: KubeletConfig,
  { startUp, pleg, cache, records }: Pick<Managers, "startUp" | "pleg" | "cache"> & { readonly records: RecordFiles },
): StaticIdentity {
  return new StaticIdentity({
    startUp,
    pleg,
    cache,
    started: new StartedStaticPods(records, log, `${node.rootDirectory}/podwright/static-pods`),
    journal,
    log: log.child({ component: "pods" }),
    matchesRunning,
    observeLimitMs: worker.observeLimitMs,
  });
}

function publisher(
  { ports, journal, cluster }: KubeletDependencies,
  { node, runtimeName }: KubeletConfig,
  { statuses, probes, features }: Pick<Managers, "statuses" | "probes"> & { readonly features: FeaturesOf },
): WorkerDependencies["publish"] {
  const facts = {
    clock: ports.clock,
    journal,
    runtimeName,
    probes: probes.states.bind(probes),
    features,
    hostIPs: cluster === undefined ? [] : node.hostIPs,
    isAlone: cluster === undefined,
  };
  return (view, cause) => publishStatus(statuses, view, cause, facts);
}

/** By the handlers that the runtime listed last. */
function featuresNow({ objects, cluster, handlers }: KubeletDependencies): FeaturesOf {
  return (pod) => podFeatures(pod, objects, cluster?.runtime()?.handlers ?? handlers);
}

/** By the last observation, which need not be the latest: who asks wants to know of sandboxes of earlier runs. */
function sandboxesIn(cache: PodCache, startUp: StartUp): SandboxesInUse {
  return (uid) => {
    const { status, error } = cache.get(uid);
    const { sandboxes, containers } = status;
    const isObserved = cache.has(uid) ? error === undefined || sandboxes.length > 0 : !cache.isStale(uid);
    if (!startUp.has("listed") || !isObserved) return undefined;
    return sandboxes.filter(({ id, ready }) => {
      return ready || containers.some(({ sandboxId, state }) => sandboxId === id && state !== "exited");
    });
  };
}

function latest(times: readonly number[]): number | undefined {
  return times.length === 0 ? undefined : Math.max(...times);
}

/** Of pods that the runtime still has, those of the same full name that are this node's. */
function rivalsAmong(pleg: Pleg, owns: KubeletDependencies["owns"]): (ref: PodRef) => Promise<readonly PodUid[]> {
  return async ({ namespace, name, uid }) => {
    const others = pleg.podsNamed(namespace, name).filter((other) => other !== uid);
    const owned = await Promise.all(others.map((other) => owns(other)));
    return others.filter((_, index) => owned[index]);
  };
}
