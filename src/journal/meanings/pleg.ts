import type { plegFacts, plegTerms } from "../vocabulary/pleg.ts";
import type { Meanings } from "./meaning.ts";

export const plegMeanings = {
  ContainerStarted: { means: "The runtime shows that a container is running." },
  ContainerDied: { means: "The runtime shows that a container has exited; the message has the exit code." },
  ContainerRemoved: { means: "The runtime no longer has the container." },
  ContainerChanged: { means: "The runtime shows a container in a state that is neither running nor exited." },
  SandboxStarted: { means: "The runtime shows that a pod sandbox is ready." },
  SandboxDied: { means: "The runtime shows that a pod sandbox is no longer ready." },
  SandboxRemoved: { means: "The runtime no longer has the pod sandbox." },
  RelistFailed: {
    means:
      "podwright cannot list the runtime's pods. Running containers are not affected; nothing is started or restarted.",
    remedy: "Check that the container runtime runs and answers (crictl ps).",
  },
  RelistRecovered: { means: "The runtime can be listed again." },
  EventDiscarded: {
    means: "The channel of pod events is full; the event is retried.",
    remedy: "Report it if it persists: the node is overloaded.",
  },
  RuntimeEventsConnected: { means: "The runtime's event stream works; podwright relists rarely, to verify it." },
  RuntimeEventsLost: {
    means: "The runtime's event stream ended or missed an event; until it works, podwright relists every second.",
  },
} as const satisfies Meanings<keyof (typeof plegTerms & typeof plegFacts)>;
