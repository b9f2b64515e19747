import type { Mutant } from "../sim-mutant-list.ts";

/** In what is decided about containers, and in what carries it out. */
export const runtimeMutants: readonly Mutant[] = [
  {
    name: "back-off-ignored",
    file: "src/runtime/container-actions.ts",
    from: "if (backOffMs !== undefined && backOffMs > nowMs) return",
    to: "if (backOffMs !== undefined && backOffMs > nowMs + 1e12) return",
  },
  {
    name: "restart-count-not-counted",
    file: "src/runtime/container-actions.ts",
    from: "return { container, kind, attempt: current.restartCount + 1, restart: true, leftover: undefined, cause };",
    to: "return { container, kind, attempt: current.restartCount, restart: true, leftover: undefined, cause };",
  },
  {
    name: "changed-definition-ignored",
    file: "src/runtime/container-actions.ts",
    from: 'if (current.hash === "" || current.hash === containerHash(container)) return undefined;',
    to: "if (container !== undefined) return undefined;",
  },
  {
    name: "success-is-restarted-on-failure",
    file: "src/api/restart-policy.ts",
    from: 'return exitCode === 0 ? "stay" : "restart";',
    to: 'return "restart";',
  },
  {
    name: "ended-container-runs-in-new-sandbox",
    file: "src/runtime/pod-actions.ts",
    from: 'return current?.state !== "exited" || afterExit(pod, container, current.exitCode) !== "stay";',
    to: "return current !== undefined || container !== undefined;",
  },
  {
    name: "sandbox-without-address-kept",
    file: "src/runtime/sandbox-actions.ts",
    from: "if (!wantsHostNetwork && newest.ips.length === 0) {",
    to: "if (!wantsHostNetwork && newest.ips.length < 0) {",
  },
  {
    name: "init-containers-all-at-once",
    file: "src/runtime/init-actions.ts",
    from: "if (!initialized) break;",
    to: "",
  },
  {
    name: "failed-init-is-no-failure",
    file: "src/runtime/init-actions.ts",
    from: 'if (current.state === "exited" && current.exitCode === 0) return {};',
    to: 'if (current.state === "exited") return {};',
  },
  {
    name: "sidecar-need-not-have-started",
    file: "src/runtime/init-actions.ts",
    from: "started: decision.kill === undefined && context.started(container, current)",
    to: "started: decision.kill === undefined",
  },
  {
    name: "sidecars-stop-with-the-rest",
    file: "src/runtime/termination-order.ts",
    from: "if (before.length > 0) order.set(name, [...before]);",
    to: "",
  },
  {
    name: "sidecars-stop-first-to-last",
    file: "src/runtime/termination-order.ts",
    from: ".filter(isSidecar).toReversed()",
    to: ".filter(isSidecar)",
  },
  {
    name: "grace-of-probe-ignored",
    file: "src/runtime/grace.ts",
    from: "return pod.metadata.deletionGracePeriodSeconds ?? ownSeconds ?? gracePeriodSeconds(pod);",
    to: "return pod.metadata.deletionGracePeriodSeconds ?? gracePeriodSeconds(pod);",
  },
  {
    name: "pre-stop-twice",
    file: "src/runtime/pre-stop-hooks.ts",
    from: "if (before !== undefined) return before.ended;",
    to: "",
  },
  {
    name: "pre-stop-not-waited-for",
    file: "src/runtime/kill-pod.ts",
    from: "const ended = deps.preStops.once(container.id, (life) => runPreStop(deps, subject, handler, cause, life));",
    to: `void deps.preStops.once(container.id, (life) => runPreStop(deps, subject, handler, cause, life));
  const ended = Promise.resolve();`,
  },
  {
    name: "pre-stop-skipped",
    file: "src/runtime/kill-pod.ts",
    from: "if (kill.graceSeconds <= 0) return;",
    to: "if (kill.graceSeconds <= 20) return;",
  },
  {
    name: "post-start-not-waited-for",
    file: "src/runtime/start-container.ts",
    from: 'await place.during("a postStart hook", postStart(deps, pod, sandbox, start, id, signal));',
    to: "postStart(deps, pod, sandbox, start, id, signal).catch(() => {});",
  },
  {
    name: "newest-dead-instance-collected",
    file: "src/runtime/garbage.ts",
    from: "return old.slice(maxPerPodContainer).filter((container) => container !== newest);",
    to: "return old.slice(maxPerPodContainer);",
  },
  {
    name: "newest-dead-sandbox-collected",
    file: "src/runtime/garbage.ts",
    from: "return sandboxes.slice(1).filter(",
    to: "return sandboxes.filter(",
  },
  {
    name: "logs-of-other-instances-removed",
    file: "src/runtime/remove-pod.ts",
    from: "if (entry.name === name || entry.name.startsWith(`${name}.`)) await",
    to: "if (name !== undefined) await",
  },
  {
    name: "termination-message-not-read",
    file: "src/runtime/termination-messages.ts",
    from: 'if (message !== "") return message;',
    to: 'if (message !== "") return "";',
  },
  {
    name: "restart-all-asker-goes-first",
    file: "src/runtime/restart-all.ts",
    from: "for (const container of [...victims, ...sources]) await",
    to: "for (const container of [...sources, ...victims]) await",
  },
  {
    name: "resize-not-recorded",
    file: "src/runtime/resize-pod.ts",
    from: "for (const { container } of resize.updates) recordActuated(deps, pod, container);",
    to: "",
  },
  {
    name: "resize-shrinks-the-pod-first",
    file: "src/runtime/resize-pod.ts",
    from: "order > 0 ? limit : undefined,\n",
    to: "order < 0 ? limit : undefined,\n",
  },
  {
    name: "resize-policy-ignored",
    file: "src/runtime/resize-actions.ts",
    from: 'policy.resourceName === name && policy.restartPolicy === "RestartContainer"',
    to: 'policy.resourceName === name && policy.restartPolicy === "Never"',
  },
  {
    name: "failed-post-start-not-stopped",
    file: "src/runtime/start-container.ts",
    from: "await killContainer(deps, target, { id, name }, graceSeconds, failure, signal);",
    to: "void [killContainer, target, graceSeconds, failure];",
  },
  {
    name: "ended-ephemeral-started-again",
    file: "src/runtime/pod-actions.ts",
    from: 'if (context.busy.has(container.name) || (current !== undefined && current.state !== "created")) return [];',
    to: 'if (context.busy.has(container.name) || current?.state === "running") return [];',
  },
  {
    name: "one-dead-container-too-many",
    file: "src/runtime/garbage.ts",
    from: "return old.slice(maxPerPodContainer).filter((container) => container !== newest);",
    to: "return old.slice(maxPerPodContainer + 1).filter((container) => container !== newest);",
  },
  {
    name: "one-dead-container-too-many-on-the-node",
    file: "src/runtime/garbage.ts",
    from: "dead.length, 0) - maxContainers;",
    to: "dead.length, 0) - maxContainers - 1;",
  },
];
