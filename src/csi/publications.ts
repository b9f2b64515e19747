import { Turns } from "../base/turns.ts";

/** What was decided about the SELinux label of a mount. */
export interface LabelDecision {
  /** Undefined: it has none. */
  readonly label: string | undefined;
}

/**
 * absent: not published. uncertain: a call's outcome is unknown, or an earlier run left it. published: a call of this
 * run confirmed it.
 */
export type PublishState = "absent" | "uncertain" | "published";

export interface Publication {
  state: PublishState;
  /** Time of the last publish, monotonic ms. */
  publishedAtMs: number;
  readonly driver: string;
  readonly handle: string;
  /** For as long as the pod has the volume; undefined: nothing is decided, or known, yet. */
  seLinux: LabelDecision | undefined;
}

const none: ReadonlySet<string> = new Set();

/** Which volumes are published to which pods, as far as this run knows. */
export class Publications {
  readonly #byPod = new Map<string, Map<string, Publication>>();
  readonly #turns = new Turns();

  /** Serializes calls for a volume of a pod: waits for its turn, which ends with disposal. */
  async turn(uid: string, name: string, signal: AbortSignal): Promise<Disposable> {
    return await this.#turns.take(`${uid}/${name}`, signal);
  }

  /** The known publication, or a new one with the state absent. */
  take(uid: string, name: string, { driver, handle }: Pick<Publication, "driver" | "handle">): Publication {
    const own = this.#byPod.get(uid) ?? new Map<string, Publication>();
    this.#byPod.set(uid, own);
    const known = own.get(name);
    if (known !== undefined) return known;
    const publishedAtMs = Number.NEGATIVE_INFINITY;
    const made: Publication = { state: "absent", publishedAtMs, driver, handle, seLinux: undefined };
    own.set(name, made);
    return made;
  }

  /** The pod's. */
  of(uid: string): { readonly name: string; readonly publication: Publication }[] {
    return [...(this.#byPod.get(uid) ?? [])].map(([name, publication]) => ({ name, publication }));
  }

  /** The known publication; undefined: this run knows of none. */
  get(uid: string, name: string): Publication | undefined {
    return this.#byPod.get(uid)?.get(name);
  }

  remove(uid: string, name: string): void {
    const own = this.#byPod.get(uid);
    own?.delete(name);
    if (own?.size === 0) this.#byPod.delete(uid);
  }

  /** @param kept names of volumes that stay */
  removePod(uid: string, kept: ReadonlySet<string> = none): void {
    for (const name of [...(this.#byPod.get(uid)?.keys() ?? [])]) if (!kept.has(name)) this.remove(uid, name);
  }

  /** Those that are published, or may be. */
  all(): { readonly uid: string; readonly name: string; readonly publication: Publication }[] {
    return [...this.#byPod].flatMap(([uid, own]) =>
      [...own].map(([name, publication]) => ({ uid, name, publication })),
    );
  }
}
