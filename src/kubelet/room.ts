import type { NodeObject } from "../api/node.ts";
import type { Pod } from "../api/pod.ts";
import type { PodUid } from "../base/ids.ts";
import type { StartUp } from "../base/start-up.ts";
import type { Images } from "../images/make-images.ts";
import type { Cause } from "../journal/entry.ts";
import type { AdmissionHandler } from "../pods/admission.ts";
import type { NodeVolumes } from "../node/node-volumes.ts";
import type { NodeProblem } from "../node/node-problem.ts";
import type { ApiAccess } from "./api-access.ts";
import type { PodKiller } from "../pods/pod-killer.ts";
import type { StopHold } from "../pods/pod-termination.ts";
import type { PodWorkers } from "../pods/pod-workers.ts";
import type { ResourceManager } from "../resources/resource-manager.ts";
import type { StorageWaits } from "../volumes/storage-waits.ts";
import type { StorageLookup } from "../objects/storage-lookup.ts";
import type { ObjectLookup } from "../runtime/config/environment.ts";
import type { PodHolding } from "../runtime/pod-holdings.ts";
import type { KnownPods } from "./known-pods.ts";
import type { VolumePlugin } from "../volumes/volume-plugin.ts";
import type { Manager } from "./manager.ts";

/**
 * An optional part of a kubelet: evictions, devices, volume drivers. It has only the members that it needs; the builder
 * of the node passes it in, and no file of the kubelet changes for it.
 */
export interface Room extends Manager {
  /** Has its say in admission after the kubelet's own handlers, also when a running pod is resized. */
  readonly admit?: AdmissionHandler;
  /** Whether pods get no sandbox for now, not even admitted ones that lost theirs. Wakes their workers when it ends. */
  readonly holdsStarts?: boolean;
  /** Whether a pod that no source wants must not be stopped yet. */
  readonly holdsStop?: StopHold;
  /** Reserves an admitted pod's needs. Called again when the pod changes, and when it returns with its UID. */
  reserve?(pod: Pod, cause: Cause): void;
  /** Gives containers what is beyond their spec. */
  readonly resources?: ResourceManager;
  /** Set up volumes of kinds that the kubelet does not know itself. */
  readonly volumePlugins?: readonly VolumePlugin[];
  /** What its pods hold of the node; released before cgroups and directories are. */
  readonly holding?: PodHolding;
  /** Why the node is not ready for its sake. */
  readonly node?: NodeProblem | undefined;
  /** The node is in a cluster, and its Node is registered there, or was found. */
  registered?(node: NodeObject): void;
  /** Told when a pod has stopped and holds nothing any more; again and again. */
  released?(uid: PodUid): void;
  /** Called once the kubelet is built, before it runs. */
  connect?(services: RoomServices): void;
}

/** What a room can ask of the kubelet. */
export interface RoomServices {
  readonly pods: KnownPods;
  /** How much the kubelet knows since its start: at "allKnown" pods of earlier runs are among them. */
  readonly startUp: Pick<StartUp, "has" | "when">;
  readonly workers: Pick<PodWorkers, "wake" | "list" | "returning">;
  /** True once it is known which pods are wanted, and which the runtime has. */
  readonly ready: () => boolean;
  /** Image leases, and the credentials that pulled images. */
  readonly images: Pick<Images, "leases" | "access">;
  /** Ends pods that are still wanted. */
  readonly killer: Pick<PodKiller, "kill">;
  /** Of the API server; undefined: the node is in no cluster. */
  readonly api: ApiAccess | undefined;
  /** What pods refer to. */
  readonly objects: ObjectLookup;
  /** Volumes that must not be detached; undefined: the node is in no cluster. */
  readonly volumesInUse: Pick<NodeVolumes, "use" | "release" | "listed" | "complete" | "completeKnown"> | undefined;
  /** Names volumes whose storage or driver does not answer. */
  readonly storageWaits: Pick<StorageWaits, "begin" | "attempts" | "explainBy">;
  /** The objects behind claims; undefined: the node is in no cluster. */
  readonly storage: StorageLookup | undefined;
  /** Restarts a pod, under its UID, that has ended and is still desired. */
  readonly restart: (pod: Pod, cause: Cause) => void;
}
