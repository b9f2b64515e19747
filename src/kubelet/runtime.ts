import { Places } from "../base/places.ts";
import { type ImageConfig, makeImageManager } from "../images/make-image-manager.ts";
import type { Recorder } from "../journal/entry.ts";
import type { Observer } from "../journal/observer.ts";
import type { ClusterHooks } from "../pods/cluster-hooks.ts";
import type { Logger } from "../ports/log.ts";
import type { Ports } from "../ports/ports.ts";
import type { UsedFeatures } from "../runtime-service/features.ts";
import type { RuntimeDependencies } from "../runtime/dependencies.ts";
import type { ObjectLookup } from "../runtime/config/environment.ts";
import { directoriesHolding } from "../runtime/layout/pod-directories.ts";
import { PodHoldings } from "../runtime/pod-holdings.ts";
import type { PodCgroups } from "../resources/pod-cgroups.ts";
import type { PodIds } from "../runtime/config/id-ranges.ts";
import type { NodeContext } from "../runtime/node-context.ts";
import { StartAttempts } from "../runtime/operations/start-attempts.ts";
import { UserNamespaces } from "../runtime/config/user-namespaces.ts";
import { VolumeManager } from "../volumes/volume-manager.ts";

/** Of what a kubelet is given, that which acting on pods needs. */
interface RuntimeParts {
  readonly ports: Omit<Ports, "network">;
  readonly journal: Recorder;
  readonly log: Logger;
  readonly objects: ObjectLookup;
  readonly features: UsedFeatures;
  readonly cluster?: ClusterHooks | undefined;
  readonly observer?: Observer | undefined;
}

interface RuntimeConfig {
  readonly node: NodeContext;
  readonly images: ImageConfig;
  readonly podIds: PodIds;
  readonly parallelStarts: number;
}

/** What acting on pods needs, with the managers that belong to nobody else. */
export function runtimeDependencies(
  deps: RuntimeParts,
  config: RuntimeConfig,
  own: Pick<RuntimeDependencies, "cri" | "actuated" | "preStops"> & { readonly podCgroups: PodCgroups },
): RuntimeDependencies {
  const { ports, journal, log, observer } = deps;
  const { clock, stalls, random, files, compression, mounts, volumeFiles, networkProbes } = ports;
  const { podCgroups: cgroups } = own;
  const volumes = new VolumeManager({
    clock,
    random,
    files,
    volumeFiles,
    mounts,
    journal,
    log: log.child({ room: "volumes" }),
    objects: deps.objects,
    node: config.node,
    recursiveReadOnlyMounts: deps.features.recursiveReadOnlyMounts,
  });
  const userNamespaces = new UserNamespaces({
    files,
    journal,
    log: log.child({ room: "runtime" }),
    node: config.node,
    ids: config.podIds,
    supported: deps.features.userNamespaces,
  });
  return {
    ...{ ...own, clock, random, files, compression, mounts, journal, observer, attempts: new StartAttempts() },
    ...{ log: log.child({ room: "runtime" }), objects: deps.objects },
    images: makeImageManager({ ...ports, log, journal, observer, images: own.cri.images }, config),
    volumes,
    userNamespaces,
    // What others may need goes first, the pod's directory last: by it a later life knows that the rest is this node's.
    holdings: new PodHoldings([
      volumes,
      userNamespaces,
      {
        name: "cgroup",
        until: "removed",
        release: (pod) => cgroups.destroy(pod),
        leftovers: { what: "RemoveCgroup", uids: () => cgroups.podUids() },
        tidyUp: () => cgroups.removeTree(),
      },
      directoriesHolding(files, mounts, config.node),
    ]),
    networkProbes,
    networkProblem: () => deps.cluster?.networkProblem(),
    node: config.node,
    starts: new Places({ clock, stalls }, { kind: "a start", limit: config.parallelStarts, patienceMs: 2000 }),
    teardowns: new Places({ clock, stalls }, { kind: "a teardown", limit: config.parallelStarts, patienceMs: 1000 }),
  };
}
