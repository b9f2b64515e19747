import type { Mutant } from "../sim-mutant-list.ts";

/** In what serves pods: probes, images, statuses, resources. */
export const managerMutants: readonly Mutant[] = [
  {
    name: "readiness-flipped-at-restart",
    file: "src/prober/probe-manager.ts",
    from: 'return ready ? "success" : "failure";',
    to: "return undefined;",
  },
  {
    name: "start-forgotten-at-restart",
    file: "src/prober/probe-manager.ts",
    from: 'return started === true ? "success" : undefined;',
    to: "return undefined;",
  },
  {
    name: "probe-results-not-written-again",
    file: "src/prober/probe-memory.ts",
    from: "retryMs, () => this.#touch());",
    to: "retryMs, () => {});",
  },
  {
    name: "one-failure-kills",
    file: "src/prober/probe-judgement.ts",
    from: "times.successThreshold : times.failureThreshold",
    to: "times.successThreshold : 1",
  },
  {
    name: "one-success-is-ready",
    file: "src/prober/probe-judgement.ts",
    from: "times.successThreshold : times.failureThreshold",
    to: "1 : times.failureThreshold",
  },
  {
    name: "failures-need-not-be-in-a-row",
    file: "src/prober/probe-judgement.ts",
    from: "streak.outcome === outcome ? streak.length + 1 : 1",
    to: "streak.length + 1",
  },
  {
    name: "readiness-before-start",
    file: "src/prober/probe-judgement.ts",
    from: 'if (type === "readiness") return started;',
    to: 'if (type === "readiness") return true;',
  },
  {
    name: "liveness-of-ending-pod",
    file: "src/prober/probe-judgement.ts",
    from: "if (ending) return false;",
    to: "",
  },
  {
    name: "initial-delay-ignored",
    file: "src/prober/probe-judgement.ts",
    from: "Math.max(nowMs + spreadMs, containerStartMs + times.initialDelayMs)",
    to: "nowMs + spreadMs",
  },
  {
    name: "always-means-never-pulled",
    file: "src/images/pull-decision.ts",
    from: 'case "Always":\n      return "pull";',
    to: 'case "Always":\n      return "use";',
  },
  {
    name: "never-means-pulled",
    file: "src/images/pull-decision.ts",
    from: 'return present ? "use" : "refuse";',
    to: 'return present ? "use" : "pull";',
  },
  {
    name: "pull-back-off-ignored",
    file: "src/images/image-manager.ts",
    from: "if (endsAtMs === undefined || endsAtMs <= nowMs) {",
    to: "if (endsAtMs === undefined || endsAtMs <= nowMs + 1e12) {",
  },
  {
    name: "phase-goes-back",
    file: "src/status/phase.ts",
    from: 'return phase === "Pending" && earlier === "Running" ? "Running" : phase;',
    to: "return phase;",
  },
  {
    name: "end-is-not-final",
    file: "src/status/generate.ts",
    from: "if (previous !== undefined && isTerminalPhase(previous.phase)) return previous.phase;",
    to: "",
  },
  {
    name: "observed-generation-missing",
    file: "src/status/generate.ts",
    from: "...(generation ? { observedGeneration: generation } : {}),",
    to: "",
  },
  {
    name: "resize-not-granted",
    file: "src/resources/allocation-manager.ts",
    from: "allocated.set(uid, resourcesOf(entry.pod));",
    to: "",
  },
  {
    name: "resize-beyond-the-node",
    file: "src/resources/resize-admission.ts",
    from: "if (requested.add(used).compare(capacity) <= 0) return undefined;",
    to: "if (requested.add(used).compare(capacity) !== 2) return undefined;",
  },
  {
    name: "allocation-lost-at-restart",
    file: "src/resources/resource-record.ts",
    from: "this.#pods = new Map([...decodeCheckpoint(text), ...this.#pods]);",
    to: "decodeCheckpoint(text);",
  },
  {
    name: "mirror-pod-deleted-unread",
    file: "src/pods/mirror-pods.ts",
    from: "const cause = pod === undefined && !sourcesReady ? undefined : wrong(mirror, pod, refused);",
    to: "const cause = wrong(mirror, pod, refused);",
  },
  {
    name: "asked-pause-not-kept",
    file: "src/status/status-sync.ts",
    from: "const retryMs = Math.max(backOffMs, askedPauseMs(error));",
    to: "const retryMs = backOffMs;",
  },
  {
    name: "orphans-before-manifests-are-read",
    file: "src/pods/sync-loop.ts",
    from: "if (!this.#deps.sourcesReady() || pleg.lastRelistMs === undefined) return;",
    to: "if (pleg.lastRelistMs === undefined) return;",
  },
  {
    name: "static-pod-ends-a-look-late",
    file: "src/status/transitions.ts",
    from: 'return phase === "Pending" ? ended.phase : phase;',
    to: "return phase.length > 0 ? ended.phase : phase;",
  },
  {
    name: "conditions-dated-anew",
    file: "src/status/conditions.ts",
    from: "lastTransitionTime: before?.status === status ? before.lastTransitionTime : formatTime(inputs.now),",
    to: "lastTransitionTime: formatTime(inputs.now),",
  },
  {
    name: "conditions-keep-their-first-date",
    file: "src/status/conditions.ts",
    from: "before?.status === status ? before.lastTransitionTime : formatTime(inputs.now),",
    to: "before !== undefined ? before.lastTransitionTime : formatTime(inputs.now),",
  },
];
