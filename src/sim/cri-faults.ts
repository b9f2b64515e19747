import type { RegistryFaults } from "./images.ts";

/** Faults between the node and the runtime, as probabilities for each call or event. */
export interface CriFaults extends RegistryFaults {
  /** The call fails without an effect. */
  readonly failBefore: number;
  /** The call has its effect, but returns an error. */
  readonly failAfter: number;
  /** Stopping a container or sandbox fails without an effect. */
  readonly stopFails: number;
  /** The call never returns, with or without its effect; only the caller's deadline ends it. */
  readonly hang: number;
  /** Factor of the duration of calls. */
  readonly slowness: number;
  /** Factor of the duration of queries: their result may be outdated when it arrives. */
  readonly lookSlowness: number;
  readonly eventLost: number;
  readonly eventTwice: number;
  readonly eventDelayMaxMs: number;
  /** The runtime has no event stream. */
  readonly noEvents: boolean;
  /** A sandbox gets no address. */
  readonly noAddress: number;
  /** The network plugin is missing: sandboxes that need it fail, and the runtime reports it. */
  readonly noNetwork: boolean;
}

export const noFaults: CriFaults = {
  failBefore: 0,
  failAfter: 0,
  stopFails: 0,
  hang: 0,
  slowness: 1,
  lookSlowness: 1,
  eventLost: 0,
  eventTwice: 0,
  eventDelayMaxMs: 30,
  noEvents: false,
  noAddress: 0,
  noNetwork: false,
  pullFails: 0,
  pullSlowness: 1,
  removalFails: 0,
  removalLies: 0,
};
