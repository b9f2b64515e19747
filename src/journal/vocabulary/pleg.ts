import type { Facts, Terms } from "./term.ts";

/** Observations of the runtime, and its availability. */
export const plegTerms = {
  ContainerStarted: { kind: "observation", seen: true },
  ContainerDied: { kind: "observation", seen: true },
  ContainerRemoved: { kind: "observation", seen: true, why: "tidied" },
  ContainerChanged: { kind: "observation", seen: true, why: "tidied" },
  SandboxStarted: { kind: "observation" },
  SandboxDied: { kind: "observation" },
  SandboxRemoved: { kind: "observation" },
  RelistFailed: { kind: "note" },
  RelistRecovered: { kind: "note" },
  EventDiscarded: {
    kind: "note",
    counter: { name: "kubelet_pleg_discard_events", help: "Events held back because the channel was full" },
  },
  RuntimeEventsConnected: {
    kind: "note",
    counter: {
      name: "kubelet_evented_pleg_connection_success_count",
      help: "Connections of the runtime's event stream",
    },
  },
  RuntimeEventsLost: {
    kind: "note",
    counter: {
      name: "kubelet_evented_pleg_connection_error_count",
      help: "Failures of the runtime's event stream",
    },
  },
} as const satisfies Terms;

/** Consequences of observations name the entries above as their causes. */
export const plegFacts = {} as const satisfies Facts;
