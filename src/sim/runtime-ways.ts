import type { RuntimeHandlerInfo } from "../runtime-service/features.ts";
import { SimRandom } from "./random.ts";

/** Behaviour that differs between runtimes, where CRI leaves it open or is violated. Everything else is alike. */
export interface RuntimeWays {
  /** Its name in Version. */
  readonly name: string;
  /** It closes connections whose first request does not have exactly gRPC's content type. */
  readonly hangsUpOnOtherTypes: boolean;
  /** GetContainerEvents ends at once without an event or error. */
  readonly endsEventStream: boolean;
  /** ContainerStatus reports RUNTIME_DEFAULT for every stop signal; the actual one is in the verbose info. */
  readonly hidesStopSignal: boolean;
  /** After a restart it reports the resources that containers were created with, not later updates. */
  readonly forgetsResizes: boolean;
  /** Minimum memory limit of a container; 0n: none. */
  readonly leastMemoryBytes: bigint;
  /**
   * A container whose creation completes after the caller gave up stays hidden, and is returned for the next request
   * with the same pod, name and attempt.
   */
  readonly keepsLateContainers: boolean;
  /** A container's log exists from its creation, not from its start. */
  readonly logsBeforeStart: boolean;
  /**
   * A container that was never started ends only by SIGKILL, so StopPodSandbox and RemoveContainer take nearly their
   * whole deadlines.
   */
  readonly stopsUnstartedLate: boolean;
  /** The start time, in nanoseconds, that it reports for a container killed before it ran. */
  readonly neverBegan: bigint;
  /** Lists its handlers in a different order each time. */
  readonly shufflesHandlers: boolean;
}

/** The default one, and those of RuntimeClasses. */
export const usualHandlers: readonly RuntimeHandlerInfo[] = ["", "runc", "crun", "plain"].map((name) => {
  return { name, recursiveReadOnlyMounts: false, userNamespaces: true };
});

/** containerd's. */
export const usualWays: RuntimeWays = {
  name: "sim",
  hangsUpOnOtherTypes: false,
  endsEventStream: false,
  hidesStopSignal: false,
  forgetsResizes: false,
  leastMemoryBytes: 0n,
  keepsLateContainers: false,
  logsBeforeStart: false,
  stopsUnstartedLate: false,
  neverBegan: 0n,
  shufflesHandlers: false,
};

/** CRI-O's default configuration; observed with 1.37. */
export const crioWays: RuntimeWays = {
  name: "cri-o",
  hangsUpOnOtherTypes: true,
  endsEventStream: true,
  hidesStopSignal: true,
  forgetsResizes: true,
  leastMemoryBytes: 12n << 20n,
  keepsLateContainers: true,
  logsBeforeStart: true,
  stopsUnstartedLate: true,
  neverBegan: -6_795_364_578_871_345_152n,
  shufflesHandlers: true,
};

/** About every fourth life has CRI-O. Drawn independently, so that nothing else in a life changes. */
export function drawWays(seed: number): RuntimeWays {
  return SimRandom.named(seed, "the runtime's ways").chance(0.25) ? crioWays : usualWays;
}
