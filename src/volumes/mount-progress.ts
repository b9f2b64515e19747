/** The missing volumes of a pod during their set-up, by their names in the pod. */
export class MountProgress {
  readonly #missing: Set<string>;
  /** Volumes whose claims cannot be used, with the reasons. */
  readonly #unprocessed = new Map<string, string>();
  /** Volumes that are not attached to the node. */
  readonly #unattached = new Set<string>();
  /** Why their last attempts failed. */
  readonly #problems = new Map<string, string>();

  constructor(volumes: readonly string[]) {
    this.#missing = new Set(volumes);
  }

  /** Returns whether the problem is new. */
  unprocessed(volume: string, problem: string): boolean {
    const isNews = this.#unprocessed.get(volume) !== problem;
    this.#unprocessed.set(volume, problem);
    return isNews;
  }

  whyUnprocessed(volume: string): string | undefined {
    return this.#unprocessed.get(volume);
  }

  /** The claim of the volume can be used from now on. */
  processed(volume: string): void {
    this.#unprocessed.delete(volume);
  }

  unattached(volume: string): void {
    this.#unattached.add(volume);
  }

  attached(volume: string): void {
    this.#unattached.delete(volume);
  }

  failed(volume: string, problem: string): void {
    this.#problems.set(volume, problem);
  }

  mounted(volume: string): void {
    this.#missing.delete(volume);
    this.#problems.delete(volume);
  }

  isMissing(volume: string): boolean {
    return this.#missing.has(volume);
  }

  /** Why volumes failed, sorted. */
  get problems(): readonly string[] {
    return [...this.#problems.values()].toSorted();
  }

  /** In upstream's words: `unmounted volumes=[a b], unattached volumes=[b], failed to process volumes=[]: why`. */
  text(because: string): string {
    const list = (names: Iterable<string>): string => [...names].toSorted().join(" ");
    const unattached = `unattached volumes=[${list(this.#unattached)}]`;
    const unprocessed = `failed to process volumes=[${list(this.#unprocessed.keys())}]`;
    return `unmounted volumes=[${list(this.#missing)}], ${unattached}, ${unprocessed}: ${because}`;
  }
}
