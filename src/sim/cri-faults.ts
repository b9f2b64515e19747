import type { RegistryFaults } from "./images.ts";

/** What goes wrong between the node and the runtime, as probabilities for each call or event. */
export interface CriFaults extends RegistryFaults {
  /** The call fails and nothing happened. */
  readonly failBefore: number;
  /** It happened, but the caller gets an error. */
  readonly failAfter: number;
  /** A stop of a container or of a sandbox fails, and what was to stop runs on. */
  readonly stopFails: number;
  /** The call never ends, whether or not it had its effect; only the caller's deadline does. */
  readonly hang: number;
  /** Calls take so many times as long. */
  readonly slowness: number;
  /** Those that only ask take so many times as long: what was asked for has happened before its look ends. */
  readonly lookSlowness: number;
  readonly eventLost: number;
  readonly eventTwice: number;
  readonly eventDelayMaxMs: number;
  /** The runtime has no event stream at all. */
  readonly noEvents: boolean;
  /** A sandbox gets no address. */
  readonly noAddress: number;
  /** The network plugin is not there: sandboxes that need it can't be made, and the runtime says so. */
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
