import type { Pod } from "../../api/pod.ts";
import { errorMessage } from "../../base/errors.ts";
import type { PodUid } from "../../base/ids.ts";
import { invariant } from "../../base/invariant.ts";
import type { PodRef, Recorder } from "../../journal/entry.ts";
import { FileError, type Files } from "../../ports/files.ts";
import { NamespaceMode } from "../../ports/gen/runtime/v1/api_pb.js";
import type { Logger } from "../../ports/log.ts";
import { ContainerConfigError } from "./container-config-error.ts";
import type { UserNamespaceProvider } from "../providers.ts";
import { type IdRange, overlaps, type PodIds, readRange, writeRange } from "./id-ranges.ts";
import { type FeaturesOf, requireUserNamespaces } from "./pod-features.ts";
import type { UserNamespace } from "./namespaces.ts";
import type { NodeContext } from "../node-context.ts";
import type { PodHolding } from "../pod-holdings.ts";
import { podDirectory } from "../layout/pod-directories.ts";
import { inUidOrder, isCopyOfPod } from "../layout/pod-names.ts";
import { podRef } from "../pod-ref.ts";

export interface UserNamespacesDependencies {
  readonly files: Files;
  readonly journal: Recorder;
  readonly log: Logger;
  readonly node: Pick<NodeContext, "rootDirectory">;
  readonly ids: PodIds;
  readonly features: FeaturesOf;
  readonly sandboxesInUse: SandboxesInUse;
}

/**
 * The pod's sandboxes that are ready or whose containers may run, with the node's IDs that they map, where the runtime
 * reports them. Undefined: the pod has not been observed yet.
 */
export type SandboxesInUse = (uid: PodUid) => readonly { readonly userIds?: IdRange | undefined }[] | undefined;

const maxFileBytes = 64 * 1024;

function refuseToAssign(owner: PodUid): never {
  throw new ContainerConfigError(`user namespace: cannot read which IDs pod ${owner} has, so no IDs can be assigned`);
}

/**
 * Assigns each pod with `hostUsers: false` node IDs that no other pod has (KEP-127). A pod keeps its range as long as
 * it may run: the file `userns` in the pod's directory is written before anything runs with it, and read after a
 * restart, also by a Go kubelet, whose files are read as well.
 */
export class UserNamespaces implements UserNamespaceProvider, PodHolding {
  readonly name = "user namespace";
  readonly until = "ended";
  readonly #deps: UserNamespacesDependencies;
  /** By pod UID; a range being written is already taken. */
  readonly #ranges = new Map<PodUid, IdRange>();
  /** Pods whose file of an earlier run is unusable, with the reason. */
  readonly #unusable = new Map<PodUid, string>();
  /** Pods whose file is empty, as a power failure may leave it: unusable while a sandbox of theirs is in use. */
  readonly #empty = new Set<PodUid>();
  /** Pods whose file could not be read: their IDs are unknown. */
  readonly #unread = new Set<PodUid>();
  readonly #writing = new Map<PodUid, Promise<void>>();
  #loaded: Promise<void> | undefined;
  /** Next slot to try: freed slots are reused as late as possible. */
  #next = 0;

  constructor(deps: UserNamespacesDependencies) {
    this.#deps = deps;
  }

  /**
   * The pod's user namespace; undefined: the node's users.
   * @throws ContainerConfigError when none can be assigned
   */
  async namespaceOf(pod: Pod): Promise<UserNamespace | undefined> {
    if (pod.spec.hostUsers !== false) return undefined;
    requireUserNamespaces(pod, this.#deps.features(pod));
    const { uid } = pod.metadata;
    await this.#load();
    await this.#readAgain();
    await this.#writing.get(uid);
    const problem = this.#problemOf(uid);
    if (problem !== undefined) throw new ContainerConfigError(`user namespace: ${problem}`);
    const range = this.#ranges.get(uid) ?? (await this.#assign(pod));
    // Users of the one would be users of the other.
    const owner = this.#ownerOf(range);
    invariant("user namespace IDs belong to one pod", owner === uid, () => `${range.first} of ${uid} are of ${owner}`);
    const { first, length } = range;
    const ids = [{ hostId: first, containerId: 0, length }];
    return { mode: NamespaceMode.POD, uids: ids, gids: ids };
  }

  /** The pod has ended: its IDs are free. */
  async release({ uid }: Pick<PodRef, "uid">): Promise<void> {
    await this.#load();
    if (![this.#ranges, this.#unusable, this.#empty, this.#unread].some((known) => known.has(uid))) return;
    await this.#deps.files.remove(this.#pathOf(uid));
    this.#unread.delete(uid);
    this.#ranges.delete(uid);
    this.#unusable.delete(uid);
    this.#empty.delete(uid);
  }

  /** Why the pod's file cannot be used. */
  #problemOf(uid: PodUid): string | undefined {
    // Its sandbox has IDs of its own, and would be recreated with others.
    const isInUse = this.#empty.has(uid) && this.#deps.sandboxesInUse(uid)?.length !== 0;
    return isInUse
      ? `cannot use ${this.#pathOf(uid)}: it is empty, and the pod has a sandbox`
      : this.#unusable.get(uid);
  }

  async #assign(pod: Pod): Promise<IdRange> {
    const { uid } = pod.metadata;
    const [unread] = this.#unread;
    if (unread !== undefined) refuseToAssign(unread);
    const range = this.#free(uid);
    this.#ranges.set(uid, range);
    const writing = this.#write(uid, range);
    this.#writing.set(uid, writing);
    try {
      await writing;
    } catch (error) {
      this.#ranges.delete(uid);
      throw error;
    } finally {
      this.#writing.delete(uid);
    }
    const message = `the pod's user namespace uses IDs ${range.first} to ${range.first + range.length - 1} of the node`;
    this.#deps.journal.record({ kind: "note", what: "UserNamespaceAssigned", message, pod: podRef(pod) });
    return range;
  }

  /** Nothing may run with it before it is on disk. */
  async #write(uid: PodUid, range: IdRange): Promise<void> {
    await this.#deps.files.makeDirectory(podDirectory(this.#deps.node, uid), 0o750);
    await this.#deps.files.writeAtomic(this.#pathOf(uid), writeRange(range), 0o600);
    this.#empty.delete(uid);
  }

  #free(uid: PodUid): IdRange {
    const { first, length, perPod } = this.#deps.ids;
    const reserved = this.#reservedBeside(uid);
    const slots = Math.floor(length / perPod);
    for (let tries = 0; tries < slots; tries++) {
      const slot = (this.#next + tries) % slots;
      const range = { first: first + slot * perPod, length: perPod };
      if (this.#ownerOf(range) !== undefined) continue;
      if (reserved.some((taken) => overlaps(taken, range))) continue;
      this.#next = slot + 1;
      return range;
    }
    throw new ContainerConfigError("could not find an empty slot to allocate a user namespace");
  }

  /**
   * What runs of pods with unusable files keeps its IDs: the runtime knows them.
   * @throws ContainerConfigError when it does not tell them: any range may be in use
   */
  #reservedBeside(uid: PodUid): IdRange[] {
    const others = [...this.#unusable.keys(), ...this.#empty].filter((other) => other !== uid);
    return others.flatMap((other) => {
      const ranges = this.#deps.sandboxesInUse(other)?.map(({ userIds }) => userIds) ?? [undefined];
      return ranges.map((range) => range ?? refuseToAssign(other));
    });
  }

  #ownerOf(range: IdRange): PodUid | undefined {
    for (const [uid, taken] of this.#ranges) if (overlaps(taken, range)) return uid;
    return undefined;
  }

  /** The assignments of earlier runs. An unusable file affects only its own pod. */
  async #load(): Promise<void> {
    this.#loaded ??= this.#readAll().catch((error: unknown) => {
      this.#loaded = undefined;
      throw error;
    });
    await this.#loaded;
  }

  async #readAll(): Promise<void> {
    const entries = await this.#deps.files.list(`${this.#deps.node.rootDirectory}/pods`);
    const names = entries.flatMap(({ name, type }) => (type === "directory" ? [name] : []));
    for (const uid of inUidOrder(names)) await this.#readOne(uid);
  }

  async #readAgain(): Promise<void> {
    for (const uid of [...this.#unread]) await this.#readOne(uid);
  }

  async #readOne(uid: PodUid): Promise<void> {
    const path = this.#pathOf(uid);
    try {
      const text = new TextDecoder().decode(await this.#deps.files.read(path, maxFileBytes));
      this.#unread.delete(uid);
      if (text === "") {
        this.#empty.add(uid);
        return;
      }
      const range = readRange(text);
      const owner = this.#ownerOf(range);
      // A copy of that pod's directory has its IDs, too. Any other may be a pod's that could not be recorded.
      if (owner !== undefined && (await isCopyOfPod(this.#deps.files, this.#deps.node, uid))) return;
      if (owner !== undefined) throw new RangeError(`its IDs belong to pod ${owner}`);
      this.#ranges.set(uid, range);
    } catch (error) {
      const isGone = error instanceof FileError && error.code === "ENOENT";
      if (isGone) this.#unread.delete(uid);
      else if (error instanceof FileError && error.code === "EIO") this.#unread.add(uid);
      if (isGone || this.#unread.has(uid)) return;
      this.#unusable.set(uid, `cannot use ${path}: ${errorMessage(error)}`);
      this.#deps.log.error("cannot read the IDs of a pod's user namespace; not restarting the pod", {
        path,
        error: errorMessage(error),
      });
    }
  }

  #pathOf(uid: PodUid): string {
    return `${podDirectory(this.#deps.node, uid)}/userns`;
  }
}
