import { Places } from "../base/places.ts";
import { type ImageConfig, type Images, makeImages } from "../images/make-images.ts";
import type { Recorder } from "../journal/entry.ts";
import type { Observer } from "../journal/observer.ts";
import type { ClusterHooks } from "../pods/cluster-hooks.ts";
import type { Cri } from "../ports/cri.ts";
import type { Logger } from "../ports/log.ts";
import type { Ports } from "../ports/ports.ts";
import type { PodCgroups } from "../resources/pod-cgroups.ts";
import { memoryLimits } from "../resources/memory-limits.ts";
import { editorOf } from "../resources/resource-manager.ts";
import type { ResourceRecord } from "../resources/resource-record.ts";
import type { ObjectLookup } from "../runtime/config/environment.ts";
import type { PodIds } from "../runtime/config/id-ranges.ts";
import type { FeaturesOf } from "../runtime/config/pod-features.ts";
import { type SandboxesInUse, UserNamespaces } from "../runtime/config/user-namespaces.ts";
import type { Effects } from "../runtime/effects.ts";
import { directoryHoldings } from "../runtime/layout/pod-directories.ts";
import type { NodeContext } from "../runtime/node-context.ts";
import { GarbageCollector } from "../runtime/operations/collect-garbage.ts";
import { ContainerConfigs } from "../runtime/operations/container-configs.ts";
import { ContainerImages } from "../runtime/operations/container-image.ts";
import { ContainerRemoval } from "../runtime/operations/container-removal.ts";
import { HookRunner } from "../runtime/operations/hooks.ts";
import { PodPreparation } from "../runtime/operations/pod-preparation.ts";
import { PodResizer } from "../runtime/operations/pod-resizer.ts";
import { PodRuntime } from "../runtime/operations/pod-runtime.ts";
import { PodSandboxes } from "../runtime/operations/pod-sandboxes.ts";
import { PodStopper } from "../runtime/operations/pod-stopper.ts";
import { PostStarts } from "../runtime/operations/post-start.ts";
import type { PreStopHooks } from "../runtime/operations/pre-stop-hooks.ts";
import { PodRemover } from "../runtime/operations/remove-pod.ts";
import { StartAttempts } from "../runtime/operations/start-attempts.ts";
import { Teardowns } from "../runtime/operations/teardown.ts";
import { type PodHolding, PodHoldings } from "../runtime/pod-holdings.ts";
import { localPlugins } from "../volumes/local-plugins.ts";
import { StorageWaits } from "../volumes/storage-waits.ts";
import { type ClusterVolumes, VolumeManager } from "../volumes/volume-manager.ts";
import { VolumeQuotas } from "../volumes/volume-quotas.ts";
import { VolumeStats } from "../volumes/volume-stats.ts";
import type { Room } from "./room.ts";

/** Of what a kubelet is given, that which acting on pods needs. */
interface RuntimeParts {
  readonly ports: Omit<Ports, "network">;
  readonly journal: Recorder;
  readonly log: Logger;
  readonly objects: ObjectLookup;
  readonly cluster?: ClusterHooks | undefined;
  readonly volumes?: ClusterVolumes | undefined;
  readonly rooms?: readonly Room[] | undefined;
  readonly observer?: Observer | undefined;
}

interface RuntimeConfig {
  readonly node: NodeContext;
  readonly images: ImageConfig;
  readonly podIds: PodIds;
  readonly parallelStarts: number;
  readonly volumeStatsPeriodMs: number;
  readonly usesQuotas: boolean;
}

type PodCgroupTree = Pick<PodCgroups, keyof PodCgroups>;

/** What the kubelet has itself of what acting on pods needs. */
interface OwnParts {
  readonly cri: Cri;
  readonly podCgroups: PodCgroupTree;
  readonly actuated: ResourceRecord;
  readonly preStops: PreStopHooks;
  readonly features: FeaturesOf;
  readonly sandboxesInUse: SandboxesInUse;
}

/** What acts on pods, with what the kubelet's other parts share of it. */
export interface ActingParts {
  readonly effects: Effects;
  readonly runtime: PodRuntime;
  readonly removal: ContainerRemoval;
  readonly collector: GarbageCollector;
  readonly volumes: VolumeManager;
  readonly volumeStats: VolumeStats;
  readonly storageWaits: StorageWaits;
  /** Undefined: volumes are measured without quotas. */
  readonly quotas: VolumeQuotas | undefined;
  readonly holdings: PodHoldings;
  readonly images: Images;
}

/** Builds what acts on pods, with the managers that only it uses. */
export function buildActing(deps: RuntimeParts, config: RuntimeConfig, own: OwnParts): ActingParts {
  const { ports, journal, observer, objects } = deps;
  const { cri, podCgroups, actuated, preStops, features, sandboxesInUse } = own;
  const { node } = config;
  const { clock, stalls, random, files } = ports;
  const log = deps.log.child({ component: "runtime" });
  const effects: Effects = { clock, random, cri, files, journal, log };
  const images = makeImages({ ...ports, log: deps.log, journal, observer, images: cri.images }, config);
  const { volumes, ...aboutVolumes } = makeVolumes(deps, config, features);
  const users = { ids: config.podIds, features, sandboxesInUse };
  const userNamespaces = new UserNamespaces({ files, journal, log, node, ...users });
  const places = (kind: string, patienceMs: number): Places =>
    new Places({ clock, stalls }, { kind, limit: config.parallelStarts, patienceMs });
  const { rooms = [] } = deps;
  const editor = editorOf([memoryLimits(node.resources), ...rooms.flatMap(({ resources = [] }) => resources)]);
  const attempts = new StartAttempts();
  const teardowns = new Teardowns(clock, places("a teardown", 1000));
  const hooks = new HookRunner(effects, ports.networkProbes);
  const removal = new ContainerRemoval(effects, { preStops, node });
  const stopper = new PodStopper(effects, { hooks, preStops, removal, teardowns, objects, node });
  const containers = {
    images: new ContainerImages(images.manager, objects, journal),
    leases: images.leases,
    configs: new ContainerConfigs(effects, { objects, volumes, userNamespaces, editor, node }),
    postStarts: new PostStarts(effects, { hooks, stopper, objects, node }),
    volumes,
    podCgroups,
    actuated,
    attempts,
    removal,
    node,
  };
  const sync = {
    preparation: new PodPreparation(effects, { podCgroups, actuated, node }),
    sandboxes: new PodSandboxes(effects, { stopper, objects, userNamespaces, node }),
    resizer: new PodResizer(effects, { podCgroups, actuated, editor, node }),
    containers,
    stopper,
    removal,
    volumes,
    starts: places("a start", 2000),
    networkProblem: () => deps.cluster?.networkProblem(),
  };
  // Shared resources are released first, the pod's directory last: it shows a later run that the rest belongs to this
  // node.
  const directories = directoryHoldings(files, node);
  const holdings = new PodHoldings([
    volumes,
    userNamespaces,
    ...rooms.flatMap(({ holding = [] }) => holding),
    cgroupHolding(podCgroups),
    ...directories,
  ]);
  const collector = new GarbageCollector(effects, removal);
  const runtime = new PodRuntime(effects, {
    sync,
    stopper,
    collector,
    remover: new PodRemover(effects, { removal, teardowns, attempts, holdings }),
    images: images.manager,
    volumes,
  });
  return { effects, runtime, removal, collector, volumes, ...aboutVolumes, holdings, images };
}

function makeVolumes(
  deps: RuntimeParts,
  { node, volumeStatsPeriodMs, usesQuotas }: RuntimeConfig,
  features: FeaturesOf,
): Pick<ActingParts, "volumes" | "volumeStats" | "storageWaits" | "quotas"> {
  const { ports, journal, objects, observer, rooms = [] } = deps;
  const { clock, random, files, memoryFiles, volumeFiles, mounts, loopDevices, processes } = ports;
  const log = deps.log.child({ component: "volumes" });
  const waits = new StorageWaits(clock, journal, log);
  const measured = observer?.volumeMeasured.bind(observer);
  const stats = new VolumeStats({ clock, random, journal, log, waits, measured }, volumeStatsPeriodMs);
  const quotas = usesQuotas
    ? new VolumeQuotas({ clock, files, quotas: ports.projectQuotas, log, rootDirectory: node.rootDirectory })
    : undefined;
  const local = localPlugins({
    ...{ clock, random, files, memoryFiles, volumeFiles, mounts, loopDevices, processes },
    ...{ journal, objects, node, quotas, observer },
  });
  const volumes = new VolumeManager({
    clock,
    files,
    volumeFiles,
    mounts,
    journal,
    objects,
    node,
    log,
    observer,
    stats,
    waits,
    plugins: [...local, ...rooms.flatMap(({ volumePlugins = [] }) => volumePlugins)],
    cluster: deps.volumes,
    features,
  });
  return { volumes, volumeStats: stats, storageWaits: waits, quotas };
}

function cgroupHolding(cgroups: PodCgroupTree): PodHolding {
  return {
    name: "cgroup",
    until: "ended",
    release: (pod) => cgroups.destroy(pod),
    leftovers: { what: "RemoveCgroup", uids: () => cgroups.podUids() },
    tidyUp: () => cgroups.removeTree(),
  };
}
