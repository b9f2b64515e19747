import { Emitter } from "../base/emitter.ts";

/**
 * The volumes of drivers that the Node's status lists: those that this node uses, which it writes, and those that are
 * attached to it, which the attach-detach controller writes. Volumes have upstream's unique names:
 * `kubernetes.io/csi/<driver>^<volume handle>`.
 */
export class NodeVolumes {
  /** The number of users of each volume. */
  readonly #users = new Map<string, number>();
  /** The volumes of each user. */
  readonly #byUser = new Map<string, Set<string>>();
  readonly #usedChanged = new Emitter();
  readonly #news = new Emitter();
  #written: ReadonlySet<string> = new Set();
  /**
   * Volumes that left use, or that only an earlier run used, with a count, until the server has the list: a write
   * without them may be in progress.
   */
  readonly #dropped = new Map<string, number>();
  #isComplete = false;
  /** What an earlier run had in use; undefined: the API server's Node was not seen yet. */
  #earlier: ReadonlySet<string> | undefined;
  /** Whether this run may not know all of it. */
  #keepsEarlier = true;
  #isCleared: (volume: string) => boolean = () => false;
  #attached: ReadonlyMap<string, string> = new Map();

  /** What the Node's `volumesInUse` should be, sorted. */
  get used(): readonly string[] {
    const earlier = this.#isComplete ? [...(this.#earlier ?? [])].filter((volume) => this.#mayBeUsed(volume)) : [];
    return [...new Set([...this.#users.keys(), ...earlier])].toSorted();
  }

  /** What the API server's Node lists as in use, or as attached. */
  get listed(): readonly string[] {
    return [...new Set([...this.#written, ...this.#attached.keys()])];
  }

  /** Whether all that pods of an earlier run use is in {@link used}. */
  get isComplete(): boolean {
    return this.#isComplete;
  }

  /** Pods of an earlier run have reported their volumes. */
  complete(): void {
    if (this.#isComplete && !this.#keepsEarlier) return;
    this.#keepsEarlier = false;
    this.completeKnown();
  }

  /**
   * They have, but some volumes on disk are unknown: what an earlier run had in use stays listed until {@link complete}.
   * @param isCleared whether a volume is certainly none of them
   */
  completeKnown(isCleared: (volume: string) => boolean = () => false): void {
    this.#isComplete = true;
    this.#isCleared = isCleared;
    this.#dropUnused();
    this.#usedChanged.emit();
  }

  /**
   * From now on the volume must not be detached.
   * @param user a pod's UID, or another name: the volume is in use until all have released it
   */
  use(volume: string, user: string): void {
    const own = this.#byUser.get(user) ?? new Set();
    if (own.has(volume)) return;
    this.#byUser.set(user, own.add(volume));
    const users = this.#users.get(volume) ?? 0;
    this.#users.set(volume, users + 1);
    if (users === 0) this.#usedChanged.emit();
  }

  release(volume: string, user: string): void {
    const own = this.#byUser.get(user);
    if (own?.delete(volume) !== true) return;
    if (own.size === 0) this.#byUser.delete(user);
    const others = (this.#users.get(volume) ?? 1) - 1;
    if (others > 0) return void this.#users.set(volume, others);
    this.#users.delete(volume);
    this.#drop(volume);
    this.#usedChanged.emit();
  }

  /** What came out of use and may have been written so, for {@link settle}. */
  get unsettled(): ReadonlyMap<string, number> {
    return new Map(this.#dropped);
  }

  /** Some of it is used again: the server's Node must be written, even if it has it as far as is known. */
  mustWrite(unsettled: ReadonlyMap<string, number>): boolean {
    return [...unsettled.keys()].some((volume) => this.#users.has(volume));
  }

  /** The server has what was used after that moment. */
  settle(unsettled: ReadonlyMap<string, number>): void {
    for (const [volume, times] of unsettled) if (this.#dropped.get(volume) === times) this.#dropped.delete(volume);
  }

  /** Everything that the user has in use. */
  releaseAll(user: string): void {
    for (const volume of [...(this.#byUser.get(user) ?? [])]) this.release(volume, user);
  }

  /** Calls the listener when the status must be written. */
  onUsedChanged(listener: () => void): Disposable {
    return this.#usedChanged.on(listener);
  }

  /** The Node as at the API server. */
  seen(status: {
    readonly volumesInUse?: readonly string[] | undefined;
    readonly volumesAttached?:
      | readonly { readonly name: string; readonly devicePath?: string | undefined }[]
      | undefined;
  }): void {
    this.#written = new Set(status.volumesInUse ?? []);
    this.#earlier ??= this.#written;
    this.#attached = new Map((status.volumesAttached ?? []).map(({ name, devicePath = "" }) => [name, devicePath]));
    if (this.#isComplete) this.#dropUnused();
    this.#news.emit();
  }

  /** Calls the listener when the API server's Node was seen. */
  onSeen(listener: () => void): Disposable {
    return this.#news.on(listener);
  }

  /** Whether the API server lists the volume as in use, and no write is removing it. */
  isWritten(volume: string): boolean {
    return this.#written.has(volume) && !this.#dropped.has(volume);
  }

  isAttached(volume: string): boolean {
    return this.#attached.has(volume);
  }

  /** The next write lacks what the Node lists and nobody uses. */
  #dropUnused(): void {
    for (const volume of this.#written) {
      if (this.#users.has(volume) || this.#dropped.has(volume) || this.#mayBeUsed(volume)) continue;
      this.#drop(volume);
    }
  }

  /** An earlier run had it, and may have left it where this run does not know it. */
  #mayBeUsed(volume: string): boolean {
    return this.#keepsEarlier && this.#earlier?.has(volume) === true && !this.#isCleared(volume);
  }

  #drop(volume: string): void {
    this.#dropped.set(volume, (this.#dropped.get(volume) ?? 0) + 1);
  }
}
