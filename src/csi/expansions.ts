import type { ObjectVersion } from "../api-client/resource.ts";
import type { PersistentVolume } from "../api/persistent-volume.ts";
import type { PersistentVolumeClaim } from "../api/persistent-volume-claim.ts";
import type { Pod } from "../api/pod.ts";
import { causeOf, errorMessage } from "../base/errors.ts";
import { formatTime } from "../base/time.ts";
import { Turns } from "../base/turns.ts";
import type { Cause, Recorder } from "../journal/entry.ts";
import { perform } from "../journal/perform.ts";
import type { StorageLookup } from "../objects/storage-lookup.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";
import type { Quantity } from "../resources/quantity.ts";
import { podRef } from "../runtime/pod-ref.ts";
import { VolumeError } from "../runtime/volume-error.ts";
import { AwaitedError } from "../volumes/awaited-error.ts";
import { CsiCallError } from "./call-error.ts";
import {
  claimSize,
  type ExpansionWay,
  failedPatch,
  finishedPatch,
  inProgressPatch,
  isLess,
  requestedSize,
  volumeSize,
  wantedExpansion,
} from "./claim-expansion.ts";
import { DriverMissingError } from "./driver-store.ts";

export interface ExpansionsDependencies {
  readonly clock: Clock;
  readonly journal: Recorder;
  readonly log: Logger;
  readonly nodeName: string;
  /** Undefined without a cluster: there are no claims. */
  readonly storage: () => StorageLookup | undefined;
}

/** A pod's volume with a claim. */
export interface ClaimedVolume {
  /** Unique on the node: equal for all pods that use it. */
  readonly unique: string;
  readonly pod: Pod;
  readonly persistentVolume: PersistentVolume;
  readonly claim: PersistentVolumeClaim;
  readonly readOnly: boolean;
}

/** NodeExpandVolume, to this size. */
export type ExpandCall = (bytes: bigint) => Promise<void>;

/** What is known of a volume's size. */
interface Known {
  /** Its known size on this node. */
  size: Quantity;
  /** An expansion failed definitely. */
  hasFailed: boolean;
  /** Its driver does not expand volumes in use: not called again. */
  isRefused: boolean;
  lookedAtMs: number;
  /** The version of its PersistentVolume that requests nothing from this node; undefined: none is known. */
  seen: ObjectVersion | undefined;
  /** The upkeep of one of its pods is running. */
  isKept: boolean;
  /** How many pods use it. */
  pods: number;
}

/** An expansion that is due. */
interface Growth {
  readonly volume: ClaimedVolume;
  /** As currently in the API server. */
  readonly claim: PersistentVolumeClaim;
  /** The size of the PersistentVolume. */
  readonly size: Quantity;
  readonly known: Known;
  readonly call: ExpandCall;
}

/** The minimum interval between reads of a running pod's claim. */
const lookMs = 10_000;
/** Codes for expansions that can never succeed (upstream's isInfeasibleError). */
const infeasibleCodes: ReadonlySet<string> = new Set(["InvalidArgument", "OutOfRange", "NotFound"]);

/**
 * Expands claims' volumes on this node after their controller has (upstream's NodeExpander): before a pod starts, and
 * while it runs. One expansion per volume at a time, however many pods use it.
 */
export class Expansions {
  readonly #deps: ExpansionsDependencies;
  readonly #known = new Map<string, Known>();
  /** The volumes of each pod. */
  readonly #byPod = new Map<string, Set<string>>();
  readonly #turns = new Turns();

  constructor(deps: ExpansionsDependencies) {
    this.#deps = deps;
  }

  /** The pod no longer uses any volume. */
  removePod(uid: string): void {
    for (const unique of this.#byPod.get(uid) ?? []) {
      const known = this.#known.get(unique);
      if (known !== undefined && --known.pods === 0) this.#known.delete(unique);
    }
    this.#byPod.delete(uid);
  }

  /** Whether a volume that is being set up may have to be expanded. */
  hasGrown(volume: ClaimedVolume): boolean {
    this.#knownOf(volume);
    return isLess(claimSize(volume.claim), volumeSize(volume.persistentVolume));
  }

  /**
   * Expands a volume that has grown during its set-up, if its claim requires it.
   * @throws VolumeError if it must be retried first
   */
  async duringSetUp(volume: ClaimedVolume, call: ExpandCall, signal: AbortSignal): Promise<void> {
    const wanted = volumeSize(volume.persistentVolume);
    const known = this.#knownOf(volume);
    if (volume.readOnly) {
      this.#tell(
        volume,
        "FileSystemResizeFailed",
        "MountVolume.NodeExpandVolume failed",
        "requested read-only file system",
      );
      return;
    }
    using _turn = await this.#turns.take(volume.unique, signal);
    const claim = await this.#claim(volume, signal);
    if (isLess(claimSize(claim), wanted)) await this.#expand({ volume, claim, size: wanted, known, call }, signal);
  }

  /** Whether the claim of a running pod's volume should be checked. */
  isDue(volume: ClaimedVolume): boolean {
    if (volume.readOnly) return false;
    const { isRefused, lookedAtMs, isKept } = this.#knownOf(volume);
    return !isRefused && !isKept && this.#deps.clock.monotonic() - lookedAtMs >= lookMs;
  }

  /** The upkeep of one of its pods starts, and ends with disposal; meanwhile no other pod's is due. */
  keep(volume: ClaimedVolume): Disposable {
    const known = this.#knownOf(volume);
    known.isKept = true;
    return {
      [Symbol.dispose]: () => {
        known.isKept = false;
      },
    };
  }

  /**
   * Reads the claim of a running pod's volume, and expands the volume if it has grown. Resolves with the reason to
   * retry.
   */
  async look(volume: ClaimedVolume, call: ExpandCall, signal: AbortSignal): Promise<VolumeError | undefined> {
    const known = this.#knownOf(volume);
    using _turn = await this.#turns.take(volume.unique, signal);
    known.lookedAtMs = this.#deps.clock.monotonic();
    const { name } = volume.persistentVolume.metadata;
    const persistentVolume = await this.#peek(name, known.seen, signal);
    if (persistentVolume === undefined) return undefined;
    const { uid, resourceVersion } = persistentVolume.metadata;
    const wanted = volumeSize(persistentVolume);
    if (known.isRefused) return undefined;
    if (!isLess(known.size, wanted)) {
      known.seen = { uid, resourceVersion };
      return undefined;
    }
    try {
      const claim = await this.#claim(volume, signal);
      await this.#expand({ volume: { ...volume, persistentVolume }, claim, size: wanted, known, call }, signal);
      return undefined;
    } catch (error) {
      signal.throwIfAborted();
      const what = `NodeExpandVolume.NodeExpandVolume failed for volume ${JSON.stringify(name)} :`;
      const message = `${what} ${errorMessage(error)}`;
      this.#deps.journal.record({ kind: "note", what: "VolumeResizeFailed", message, pod: podRef(volume.pod) });
      return new VolumeError(message, { cause: error });
    }
  }

  /** Undefined: it has not changed since, or cannot be read now; a later sync retries. */
  async #peek(
    name: string,
    seen: ObjectVersion | undefined,
    signal: AbortSignal,
  ): Promise<PersistentVolume | undefined> {
    const storage = this.#deps.storage();
    try {
      if (seen === undefined) return await storage?.persistentVolume(name, signal);
      return await storage?.changedVolume(name, seen, signal);
    } catch (error) {
      signal.throwIfAborted();
      this.#deps.log.debug("cannot check a volume's size", { volume: name, error: errorMessage(error) });
      return undefined;
    }
  }

  #knownOf({ unique, pod, claim }: ClaimedVolume): Known {
    const known: Known = this.#known.get(unique) ?? {
      size: claimSize(claim),
      hasFailed: false,
      isRefused: false,
      lookedAtMs: Number.NEGATIVE_INFINITY,
      seen: undefined,
      isKept: false,
      pods: 0,
    };
    this.#known.set(unique, known);
    const { uid } = pod.metadata;
    const own = this.#byPod.get(uid) ?? new Set();
    if (!own.has(unique)) known.pods++;
    this.#byPod.set(uid, own.add(unique));
    return known;
  }

  async #claim({ claim: { metadata } }: ClaimedVolume, signal: AbortSignal): Promise<PersistentVolumeClaim> {
    const storage = this.#deps.storage();
    if (storage === undefined) throw new VolumeError("mountVolume.NodeExpandVolume get PVC failed : no API server");
    try {
      return await storage.claim(metadata.namespace ?? "", metadata.name, signal);
    } catch (error) {
      signal.throwIfAborted();
      const message = `mountVolume.NodeExpandVolume get PVC failed : ${errorMessage(error)}`;
      throw new VolumeError(message, { cause: error });
    }
  }

  async #expand(growth: Growth, signal: AbortSignal): Promise<void> {
    const { volume, claim: found, known } = growth;
    const expansion = wantedExpansion(found, growth.size);
    if (expansion === undefined) return;
    const { way, size } = expansion;
    if (way !== "done") {
      const claim = way === "recorded" ? await this.#patch(found, inProgressPatch(found), signal) : found;
      if (!(await this.#expandNow({ ...growth, claim, size }, way, signal))) return;
      this.#tell(volume, "FileSystemResizeSuccessful", "MountVolume.NodeExpandVolume succeeded", this.#deps.nodeName);
      if (isLess(claimSize(claim), size) || way === "recorded") await this.#finish(claim, size, signal);
    }
    known.size = size;
    known.hasFailed = false;
  }

  /** False: the driver does not expand it while it is in use, but it can still be used. */
  async #expandNow(growth: Growth, way: ExpansionWay, signal: AbortSignal): Promise<boolean> {
    const { known } = growth;
    try {
      await this.#call(growth);
      known.isRefused = false;
      return true;
    } catch (error) {
      signal.throwIfAborted();
      const isRefused = error instanceof CsiCallError && error.code === "FailedPrecondition";
      if (isRefused) known.isRefused = true;
      await this.#failed(growth, way, error, signal);
      if (isRefused) return false;
      throw new VolumeError(expansionProblem(error), { cause: error });
    }
  }

  async #call({ volume, claim, size, call }: Growth): Promise<void> {
    const { clock, journal } = this.#deps;
    const { name } = volume.persistentVolume.metadata;
    const cause: Cause = {
      code: "VolumeHasGrown",
      message: `volume ${name} has ${size.toString()}, the status of its claim ${claim.metadata.name} only ${claimSize(claim).toString()}`,
    };
    const action = {
      what: "ExpandVolume",
      message: `expand volume ${name} to ${size.toString()}`,
      pod: podRef(volume.pod),
      cause,
      data: { volume: name },
    } as const;
    await perform(journal, clock, action, () => call(size.value()));
  }

  /** Records a failure in the claim; as upstream, also of a call that may still have an effect. */
  async #failed({ claim, size, known }: Growth, way: ExpansionWay, error: unknown, signal: AbortSignal): Promise<void> {
    // Nothing was tried.
    if (causeOf(error, DriverMissingError) !== undefined || causeOf(error, AwaitedError) !== undefined) return;
    // Another size is requested by now, and this one fails again: the resizer should continue with the new one.
    const isInfeasible = isImpossible(error) || (known.hasFailed && !sameSize(requestedSize(claim), size));
    known.hasFailed = true;
    if (way === "unrecorded") return;
    const { clock, log } = this.#deps;
    try {
      await this.#patch(
        claim,
        failedPatch(claim, expansionProblem(error), isInfeasible, formatTime(clock.now())),
        signal,
      );
    } catch (failure) {
      signal.throwIfAborted();
      const { namespace, name } = claim.metadata;
      log.warn("cannot record a failed expansion in the claim's status", {
        namespace,
        claim: name,
        error: errorMessage(failure),
      });
    }
  }

  async #finish(claim: PersistentVolumeClaim, size: Quantity, signal: AbortSignal): Promise<void> {
    try {
      await this.#patch(claim, finishedPatch(claim, size), signal);
    } catch (error) {
      signal.throwIfAborted();
      const message = `mountVolume.NodeExpandVolume update pvc status failed: ${errorMessage(error)}`;
      throw new VolumeError(message, { cause: error });
    }
  }

  async #patch(claim: PersistentVolumeClaim, patch: object, signal: AbortSignal): Promise<PersistentVolumeClaim> {
    const { namespace = "", name } = claim.metadata;
    const storage = this.#deps.storage();
    if (storage === undefined) throw new VolumeError("no API server");
    try {
      return await storage.patchClaimStatus(namespace, name, patch, signal);
    } catch (error) {
      signal.throwIfAborted();
      const message = `patchPVCStatus failed to patch PVC ${JSON.stringify(name)}: ${errorMessage(error)}`;
      throw new VolumeError(message, { cause: error });
    }
  }

  /** Events for the pod and its claim. */
  #tell(
    { pod, persistentVolume, claim }: ClaimedVolume,
    what: "FileSystemResizeSuccessful" | "FileSystemResizeFailed",
    words: string,
    more: string,
  ): void {
    const message = `${words} for volume ${JSON.stringify(persistentVolume.metadata.name)} ${more}`;
    const { namespace = "", name, uid = "" } = claim.metadata;
    this.#deps.journal.record({
      kind: "note",
      what,
      message,
      pod: podRef(pod),
      data: { claim: { namespace, name, uid } },
    });
  }
}

function sameSize(a: Quantity, b: Quantity): boolean {
  return a.nanos === b.nanos;
}

function isImpossible(error: unknown): boolean {
  return error instanceof CsiCallError && infeasibleCodes.has(error.code);
}

/** In upstream's words. */
function expansionProblem(error: unknown): string {
  return `Expander.NodeExpand failed to expand the volume ${isImpossible(error) ? "" : ": "}${errorMessage(error)}`;
}
