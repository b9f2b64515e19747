import type { Mutant } from "../sim-mutant-list.ts";

/** Found by invariants in the code, or by the simulated machine, where they occur. */
export const guardMutants: readonly Mutant[] = [
  {
    name: "changed-container-started-beside-itself",
    file: "src/runtime/actions/container-actions.ts",
    from: "return { kill: { container: running, cause: changed, restarts: true, eventMessage }, start: again(changed) };",
    to: "return { start: again(changed) };",
  },
  {
    name: "regular-containers-beside-init-containers",
    file: "src/runtime/actions/pod-actions.ts",
    from: "if (!init.initialized) return withResize([...ephemeral, ...init.decisions]);",
    to: "",
  },
  {
    name: "first-starts-last-to-first",
    file: "src/runtime/actions/pod-actions.ts",
    from: "return withResize([...ephemeral, ...init.decisions, ...decisions]);",
    to: "return withResize([...ephemeral, ...init.decisions, ...decisions.toReversed()]);",
  },
  {
    name: "two-writes-of-a-status-at-once",
    file: "src/status/status-sync.ts",
    from: "else if (!entry.busy) due.push({ entry, write });",
    to: "else due.push({ entry, write });",
  },
  {
    name: "user-ids-of-two-pods",
    file: "src/runtime/config/user-namespaces.ts",
    from: "if (this.#ownerOf(range) !== undefined) continue;",
    to: "",
  },
  {
    name: "probed-until-the-wait-is-over",
    file: "src/prober/probe-worker.ts",
    from: "if (!this.#mayProbe()) return this.#cancel();",
    to: "if (!this.#mayProbe()) return;",
  },
  {
    name: "parts-of-volumes-left-mounted",
    file: "src/volumes/volumes-on-disk.ts",
    from: "for (const target of targets.toReversed()) await this.#mounts.unmount(target);",
    to: "",
  },
  {
    name: "drivers-volume-unmounted",
    file: "src/volumes/volumes-on-disk.ts",
    from: "mounts: targets.filter(isAt(paths.subPaths)) };",
    to: "mounts: targets };",
  },
];
