import type { KubeletConfiguration } from "./defaults.ts";

/** Requests a second and at once. */
interface RateLimit {
  readonly perSecond: number;
  readonly burst: number;
}

/** What client-go takes for a rate and a burst of 0. */
const clientGo: RateLimit = { perSecond: 5, burst: 10 };

/**
 * The limits of requests to the API server, and of Events. Only a flag can set a burst to 0: in a file it means the
 * default.
 */
export function clientLimits(configuration: KubeletConfiguration): Readonly<Record<"requests" | "events", RateLimit>> {
  const { kubeAPIQPS, kubeAPIBurst, eventRecordQPS, eventBurst } = configuration;
  return { requests: limit(kubeAPIQPS, kubeAPIBurst), events: limit(eventRecordQPS, eventBurst) };
}

function limit(perSecond: number, burst: number): RateLimit {
  return { perSecond: perSecond || clientGo.perSecond, burst: burst || clientGo.burst };
}
