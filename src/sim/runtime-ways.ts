import { SimRandom } from "./random.ts";

/**
 * What one runtime does otherwise than another, where CRI leaves it open or is not kept to. Everything else is alike.
 */
export interface RuntimeWays {
  /** What it calls itself (Version). */
  readonly name: string;
  /** On the wire: hangs up on a connection whose first request does not name gRPC's content type exactly. */
  readonly hangsUpOnOtherTypes: boolean;
  /** GetContainerEvents ends at once and well, without an event. */
  readonly endsEventStream: boolean;
  /** ContainerStatus says RUNTIME_DEFAULT of every stop signal; which it is stands in what a verbose one adds. */
  readonly hidesStopSignal: boolean;
  /** After a restart it tells of containers what they were made with, not what they were given since. */
  readonly forgetsResizes: boolean;
  /** It makes no container with less; 0n: with whatever is asked for. */
  readonly leastMemoryBytes: bigint;
  /**
   * A container that is made when nobody waits for it any more is shown to nobody, and is the answer to the next request
   * for one of the same pod, name and attempt.
   */
  readonly keepsLateContainers: boolean;
  /** A container's log is there when it is made, not only when it is started. */
  readonly logsBeforeStart: boolean;
  /**
   * One that was made and never started ends by SIGKILL only. For that StopPodSandbox and RemoveContainer take nearly all of
   * their deadlines.
   */
  readonly stopsUnstartedLate: boolean;
  /** When it says that a container has begun which was killed before it ran, in nanoseconds. */
  readonly neverBegan: bigint;
  /** Lists its handlers in another order each time. */
  readonly shufflesHandlers: boolean;
}

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

/** CRI-O's, as it is configured by default; seen with 1.37. */
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

/** Every fourth life or so has CRI-O. Drawn by itself, so that nothing else of a life is drawn otherwise for it. */
export function drawWays(seed: number): RuntimeWays {
  return SimRandom.named(seed, "the runtime's ways").chance(0.25) ? crioWays : usualWays;
}
