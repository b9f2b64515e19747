import { lastingContainers } from "../api/all-containers.ts";
import type { Container } from "../api/container.ts";
import type { Pod } from "../api/pod.ts";

/** In order of importance: nothing else is probed before the container has started. */
export const probeTypes = ["startup", "liveness", "readiness"] as const;
export type ProbeType = (typeof probeTypes)[number];

const names = { startup: "Startup", liveness: "Liveness", readiness: "Readiness" } as const;

/** `Liveness`: the type as in Kubernetes' messages. */
export function capitalised(type: ProbeType): Capitalize<ProbeType> {
  return names[type];
}

/** corev1.Probe as in the manifest. */
export type Probe = NonNullable<Container["livenessProbe"]>;

/** When and how often to probe, with the API's defaults. */
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

/** Zero means unset for all but the delay, as for the API server. */
export function probeTimes(probe: Probe): ProbeTimes {
  return {
    initialDelayMs: (probe.initialDelaySeconds ?? 0) * 1000,
    periodMs: (probe.periodSeconds || 10) * 1000,
    timeoutMs: (probe.timeoutSeconds || 1) * 1000,
    successThreshold: probe.successThreshold || 1,
    failureThreshold: probe.failureThreshold || 3,
  };
}

/** Observes the rate limiter's waits. @param host of the API server */
export function probedContainers(pod: Pod): Container[] {
  return lastingContainers(pod.spec);
}
