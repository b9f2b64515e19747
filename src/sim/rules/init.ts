import type { Pod } from "../api/pod.ts";
import type { SimContainer, WorldChange } from "./runtime-world.ts";

/**
 * Judges the order of init containers: before any container starts, every init container ahead of it has ended well in
 * the same sandbox, or has been started if it is a sidecar (design invariant 3). Remembers by itself, since the runtime
 * forgets what is removed.
 */
export class InitRules {
  readonly #wanted: ReadonlyMap<string, Pod>;
  readonly #report: (rule: string, detail: string) => void;
  /** `<sandbox>/<container>` of init containers that have ended well and of sidecars that were started. */
  readonly #done = new Set<string>();

  constructor(wanted: ReadonlyMap<string, Pod>, report: (rule: string, detail: string) => void) {
    this.#wanted = wanted;
    this.#report = report;
  }

  judge({ type, container, podUid }: WorldChange): void {
    const pod = this.#wanted.get(podUid);
    if (container === undefined || pod === undefined) return;
    const name = container.config.metadata?.name ?? "";
    const index = pod.spec.initContainers?.findIndex((init) => init.name === name) ?? -1;
    const isSidecar = pod.spec.initContainers?.[index]?.restartPolicy === "Always";
    if (type === "started") {
      this.#started(pod, container, name, index);
      if (isSidecar) this.#done.add(`${container.sandboxId}/${name}`);
    }
    if (type === "exited" && container.startedAt !== 0n && container.exitCode === 0 && index >= 0) {
      this.#done.add(`${container.sandboxId}/${name}`);
    }
  }

  #started(pod: Pod, container: SimContainer, name: string, index: number): void {
    const { initContainers = [], containers } = pod.spec;
    const ahead = index >= 0 ? initContainers.slice(0, index) : initContainers;
    // A sidecar that is restarted beside running containers had its turn before.
    const done = `${container.sandboxId}/${name}`;
    if (index >= 0 && this.#done.has(done)) {
      if (initContainers[index]?.restartPolicy === "Always") return;
      this.#report("init containers run once", `${pod.metadata.uid}/${name} ran again after it had ended well`);
    }
    const missing = ahead.find((init) => !this.#done.has(`${container.sandboxId}/${init.name}`));
    if (missing !== undefined && (index >= 0 || containers.some((own) => own.name === name))) {
      this.#report("init order", `${pod.metadata.uid}/${name} started before ${missing.name} had done its part`);
    }
  }
}
