import { podUid } from "../../src/base/ids.ts";
import type { ContainerView, PodPlan, PodView } from "../../src/server/local-api.ts";

/** A running, ready container, for tests, with overrides. */
export function containerView(change: Partial<ContainerView>): ContainerView {
  return {
    name: "app",
    id: "c1",
    image: "podwright.local/demo:1",
    state: "running",
    reason: "",
    message: "",
    exitCode: undefined,
    ready: true,
    restartCount: 0,
    startedAt: 400_000,
    finishedAt: undefined,
    logPath: "/var/log/pods/default_web_uid-web/app/0.log",
    previousLogPath: undefined,
    ...change,
  };
}

/** A running, ready pod, for tests, with overrides. */
export function podView(change: Partial<PodView>): PodView {
  const name = change.name ?? "web";
  return {
    namespace: "default",
    name,
    uid: podUid(`uid-${name}`),
    source: "run",
    state: "syncing",
    phase: "Running",
    reason: "",
    message: "",
    ready: true,
    ips: ["10.88.0.2"],
    hostNetwork: false,
    hostPorts: [{ hostIP: "", hostPort: 8080, containerPort: 80, protocol: "TCP" }],
    node: "node-1",
    createdAt: 400_000,
    containers: [containerView({})],
    initContainers: [],
    ephemeralContainers: [],
    logDirectory: `/var/log/pods/default_${name}_uid-${name}`,
    ignoredManifests: [],
    killAt: undefined,
    ...change,
  };
}

/** A pod with nothing to do. */
export function podPlan(more: Partial<PodPlan>): PodPlan {
  const ref = { namespace: "default", name: "web", uid: podUid("uid-web") };
  return { ...ref, change: undefined, steps: [], waits: [], underWay: [], note: "", ...more };
}
