import type { Mutant } from "../sim-mutant-list.ts";

/** In what looks at pods, drives them and admits them. */
export const podMutants: readonly Mutant[] = [
  {
    name: "look-numbered-at-its-end",
    file: "src/pleg/pleg.ts",
    from: "this.#deps.cache.set(uid, status, undefined, observed);",
    to: "this.#deps.cache.set(uid, status, undefined, ++this.#observation);",
  },
  {
    name: "look-under-way-counts",
    file: "src/pleg/pod-cache.ts",
    from: "if (data.observed > subscriber.newerThan) subscriber.deliver(data);",
    to: "if (data.observed >= subscriber.newerThan) subscriber.deliver(data);",
  },
  {
    name: "old-observation-accepted",
    file: "src/pods/pod-worker.ts",
    from: "this.#effects = this.#deps.pleg.now();",
    to: "",
  },
  {
    name: "cache-written-by-listing",
    file: "src/pleg/pleg.ts",
    from: "if (!isSame || this.#unseen.has(uid)) this.#inspect(uid, false);",
    to: `const { status } = this.#deps.cache.get(uid);
      if (!isSame) this.#deps.cache.set(uid, { ...status, containers: [] }, undefined, observed);
      if (!isSame || this.#unseen.has(uid)) this.#inspect(uid, false);`,
  },
  {
    name: "deaths-wake-nobody",
    file: "src/pods/pod-worker.ts",
    from: 'if (event.type === "PodSync") return;',
    to: 'if (event.type === "PodSync" || event.type === "ContainerDied") return;',
  },
  {
    name: "failed-look-shows-nothing",
    file: "src/pleg/pleg.ts",
    from: "const last = this.#deps.cache.get(uid).status;",
    to: `const last = { ...this.#deps.cache.get(uid).status, sandboxes: [], containers: [] };
      if (uid !== "") return this.#deps.cache.set(uid, last, undefined, observed);`,
  },
  {
    name: "orphan-forgotten",
    file: "src/pods/sync-loop.ts",
    from: "workers.removeOrphan({ uid, name: status.name, namespace: status.namespace }, pod, cause);",
    to: "void [pod, cause];",
  },
  {
    name: "orphan-loses-its-grace",
    file: "src/pods/sync-loop.ts",
    from: "const pod = await keptSpec(runtime.files, runtime.node, uid);",
    to: "const pod = undefined;",
  },
  {
    name: "leftovers-of-listed-pod-removed",
    file: "src/pods/sync-loop.ts",
    from: "|| cache.uids().includes(pod) || pleg.isListed(pod);",
    to: "|| cache.uids().includes(pod);",
  },
  {
    name: "busy-containers-decided-about",
    file: "src/pods/pod-operations.ts",
    from: "containers: new Set(running.flatMap(({ pending }) => [...pending])),",
    to: "containers: new Set(),",
  },
  {
    name: "starts-go-on-in-ending-pod",
    file: "src/pods/pod-worker.ts",
    from: "if (this.#operations.abort(new CalledOff(cause)) > 0) this.#acted();",
    to: "if (this.#operations.count > 0) this.#acted();",
  },
  {
    name: "removed-while-a-start-is-on-its-way",
    file: "src/pods/pod-worker.ts",
    from: "if (waitUntilMs !== undefined) return this.#schedule.by(waitUntilMs, state.cause);",
    to: "void waitUntilMs;",
  },
  {
    name: "removed-before-it-has-stopped",
    file: "src/pods/pod-worker.ts",
    from: "const wasStopped = this.#stopsInARow > 0 || status.sandboxes.length === 0;\n    if (wasStopped && hasStopped(status)) {",
    to: "if (++this.#stopsInARow > 2) {",
  },
  {
    name: "rival-of-earlier-life-ignored",
    file: "src/pods/pod-worker.ts",
    from: "if (await this.#waitsForRival()) return;",
    to: "",
  },
  {
    name: "two-pods-of-one-name",
    file: "src/pods/pod-workers.ts",
    from: 'worker.queuedBehind(queue[0]?.ref.uid ?? "");',
    to: "this.#run(worker);",
  },
  {
    name: "deadline-halved",
    file: "src/pods/active-deadline.ts",
    from: "this.#startedMs + seconds * 1000",
    to: "this.#startedMs + seconds * 500",
  },
  {
    name: "back-off-end-wakes-nobody",
    file: "src/pods/step-schedule.ts",
    from: "this.by(untilMs, over);",
    to: "void over;",
  },
  {
    name: "deadline-ignored",
    file: "src/pods/pod-worker.ts",
    from: "if (endsAtMs === undefined) return false;",
    to: "if (endsAtMs !== null) return false;",
  },
  {
    name: "grace-halved",
    file: "src/pods/pod-worker.ts",
    from: "wholeSeconds(state.killAtMs - runtime.clock.monotonic())",
    to: "wholeSeconds((state.killAtMs - runtime.clock.monotonic()) / 2)",
  },
  {
    name: "grace-doubled",
    file: "src/pods/pod-worker.ts",
    from: "wholeSeconds(state.killAtMs - runtime.clock.monotonic())",
    to: "wholeSeconds((state.killAtMs - runtime.clock.monotonic()) * 2)",
  },
  {
    name: "volume-updates-lost",
    file: "src/pods/pod-worker.ts",
    from: "makesSandbox || (await this.#deps.runtime.volumes.refresh(pod, cause, signal))",
    to: "true",
  },
  {
    name: "host-ports-not-compared",
    file: "src/pods/host-ports.ts",
    from: "a.port === b.port &&",
    to: "a.port === b.port + 1 &&",
  },
  {
    name: "host-port-lost-at-restart",
    file: "src/pods/after-listing.ts",
    from: "const holds = isHeld || (contends && !this.#deps.knowsAll());",
    to: "const holds = isHeld && contends;",
  },
  {
    name: "end-forgotten-at-restart",
    file: "src/pods/pod-endings.ts",
    from: "if (end !== undefined) this.#ends.set(uid, end);",
    to: "void end;",
  },
  {
    name: "back-off-forgotten-at-restart",
    file: "src/pods/pod-record.ts",
    from: "this.#restarts.remember(backOff);",
    to: "void backOff;",
  },
  {
    name: "back-off-does-not-grow",
    file: "src/base/back-off.ts",
    from: "Math.min(entry.delayMs * 2, this.#maxMs)",
    to: "entry.delayMs",
  },
  {
    name: "back-off-without-end",
    file: "src/base/back-off.ts",
    from: "Math.min(entry.delayMs * 2, this.#maxMs)",
    to: "entry.delayMs * 2",
  },
  {
    name: "back-off-never-expires",
    file: "src/base/back-off.ts",
    from: "eventTimeMs - entry.lastUpdateMs > this.#expiryMs",
    to: "eventTimeMs - entry.lastUpdateMs > 1e12",
  },
  {
    name: "protocols-of-host-ports-ignored",
    file: "src/pods/host-ports.ts",
    from: "return a.protocol === b.protocol && a.port === b.port &&",
    to: "return a.port === b.port &&",
  },
  {
    name: "preemption-that-is-not-enough",
    file: "src/pods/preemption.ts",
    from: "if (without(requirements, open).length > 0) return undefined;",
    to: "",
  },
  {
    name: "guaranteed-pods-preempted-first",
    file: "src/pods/preemption.ts",
    from: "closest(guaranteed, without(requirements, [...bestEffort, ...burstable]))",
    to: "closest(guaranteed, without(requirements, bestEffort))",
  },
  {
    name: "critical-pods-preempted",
    file: "src/pods/preemption.ts",
    from: "if (!isCriticalPod(other)) return true;",
    to: "return true;",
  },
  {
    name: "told-to-make-room-while-waiting",
    file: "src/pods/admission-desk.ts",
    from: "if (index === place || mayPreempt(pod, other)) return false;",
    to: "if (index === place) return false;",
  },
];
