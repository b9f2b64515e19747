import { lastingContainers } from "../api/all-containers.ts";
import type { Container } from "../api/container.ts";
import type { Pod } from "../api/pod.ts";

/** In the order in which they matter to a container: nothing else is probed before it has started. */
export const probeTypes = ["startup", "liveness", "readiness"] as const;
export type ProbeType = (typeof probeTypes)[number];

const names = { startup: "Startup", liveness: "Liveness", readiness: "Readiness" } as const;

/** `Liveness`: the type as codes and Kubernetes' own messages spell it. */
export function capitalised(type: ProbeType): Capitalize<ProbeType> {
  return names[type];
}

/** corev1.Probe as a manifest gives it. */
export type Probe = NonNullable<Container["livenessProbe"]>;

/** When and how often to probe, with the API's defaults filled in. */
export interface ProbeTimes {
  readonly initialDelayMs: number;
  readonly periodMs: number;
  readonly timeoutMs: number;
  readonly successThreshold: number;
  readonly failureThreshold: number;
}

export function probeOf(container: Container, type: ProbeType): Probe | undefined {
  switch (type) {
    case "startup":
      return container.startupProbe;
    case "liveness":
      return container.livenessProbe;
    case "readiness":
      return container.readinessProbe;
  }
}

/** Zero means "not given" for all but the delay, as for the API server. */
export function probeTimes(probe: Probe): ProbeTimes {
  return {
    initialDelayMs: (probe.initialDelaySeconds ?? 0) * 1000,
    periodMs: (probe.periodSeconds || 10) * 1000,
    timeoutMs: (probe.timeoutSeconds || 1) * 1000,
    successThreshold: probe.successThreshold || 1,
    failureThreshold: probe.failureThreshold || 3,
  };
}

/** Containers that may have probes: regular ones and sidecars. Other init containers and ephemeral ones are not probed. */
export function probedContainers(pod: Pod): Container[] {
  return lastingContainers(pod.spec);
}
