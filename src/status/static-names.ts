import type { PodUid } from "../base/ids.ts";

/** The UIDs with statuses of static pods, by full name: during a replacement both have it. */
export class StaticNames {
  readonly #uids = new Map<string, Set<PodUid>>();

  add(name: string, uid: PodUid): void {
    const known = this.#uids.get(name);
    if (known === undefined) this.#uids.set(name, new Set([uid]));
    else known.add(uid);
  }

  remove(uid: PodUid): void {
    for (const [name, uids] of this.#uids) if (uids.delete(uid) && uids.size === 0) this.#uids.delete(name);
  }

  /** The latest first. */
  named(name: string): readonly PodUid[] {
    return [...(this.#uids.get(name) ?? [])].toReversed();
  }
}
