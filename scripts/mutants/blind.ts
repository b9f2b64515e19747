import type { Mutant } from "../sim-mutant-list.ts";

/** Chosen from the code, before looking at the simulator's rules. */
export const blindMutants: readonly Mutant[] = [
  {
    name: "returning-pod-forgotten",
    file: "src/pods/pod-workers.ts",
    from: "this.#returning.set(uid, { letIn: pod, ...this.#returning.get(uid), pod, cause });",
    to: "void cause;",
  },
  {
    name: "wake-lost-during-step",
    file: "src/pods/step-schedule.ts",
    from: "if (this.#nextMs !== undefined && this.#nextMs <= atMs) return;",
    to: "if (this.#nextMs !== undefined && this.#nextMs > 0 && this.#nextMs <= atMs) return;",
  },
  {
    name: "failed-volume-update-not-repeated",
    file: "src/volumes/volume-refresh.ts",
    from: "if (reason instanceof VolumeError || reason instanceof ContainerConfigError) contents.set(name, inputs);",
    to: "contents.set(name, inputs);",
  },
  {
    name: "users-of-earlier-life-unread",
    file: "src/runtime/config/user-namespaces.ts",
    from: "await this.#load();\n    await this.#readAgain();",
    to: "",
  },
  {
    name: "shorter-grace-of-removal-lost",
    file: "src/pods/sync-loop.ts",
    from: "workers.remove(uid, cause, change.graceSeconds);",
    to: "workers.remove(uid, cause);",
  },
  {
    name: "termination-lengthened",
    file: "src/pods/worker-state.ts",
    from: "if (killAtMs < state.killAtMs)",
    to: "if (killAtMs !== state.killAtMs)",
  },
  {
    name: "newest-container-by-wall-clock",
    file: "src/runtime/status/inspect.ts",
    from: "return b.restartCount - a.restartCount || Number(b.createdAt - a.createdAt);",
    to: "return Number(b.createdAt - a.createdAt) || b.restartCount - a.restartCount;",
  },
  {
    name: "lost-attempts-not-counted",
    file: "src/runtime/operations/lost-attempts.ts",
    from: "if (start.attempt > 0 || start.leftover !== undefined) return start;",
    to: "if (start.attempt >= 0) return start;",
  },
  {
    name: "exits-dated-anew-at-each-look",
    file: "src/pods/restart-times.ts",
    from: "exits.set(container.id, this.#exits.get(container.id) ?? this.#firstSeen(container));",
    to: "exits.set(container.id, this.#firstSeen(container));",
  },
  {
    name: "stale-mark-lost",
    file: "src/pleg/pod-cache.ts",
    from: "this.#stale.set(uid, began);",
    to: "void began;",
  },
  {
    name: "dead-sandbox-not-stopped",
    file: "src/runtime/status/remains.ts",
    from: "sandboxes: status.sandboxes };",
    to: "sandboxes: status.sandboxes.filter(({ ready }) => ready) };",
  },
];
