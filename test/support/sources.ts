import type { JournalInput, Recorder } from "../../src/journal/entry.ts";
import type { Logger } from "../../src/ports/log.ts";
import type { RunStorage } from "../../src/sources/run-storage.ts";
import type { SourceState } from "../../src/sources/source.ts";
import { ManualClock } from "./manual-clock.ts";

/** A journal that records its entries, for tests. */
export class MemoryRecorder implements Recorder {
  readonly entries: JournalInput[] = [];

  record(entry: JournalInput): number {
    return this.entries.push(entry);
  }

  /** Messages of the entries with a name. */
  messages(what: string): string[] {
    return this.entries.filter((entry) => entry.what === what).map((entry) => entry.message);
  }
}

export const silentLog: Logger = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
  child: () => silentLog,
};

/** A node without claims. */
export const noStorage: RunStorage = {
  load: async () => [],
  unreadable: [],
  problems: () => [],
  prepare: async () => {},
  resume: async () => {},
  take: async () => {},
  preview: (_objects, pods) => ({ objects: [], waits: pods.map(() => []) }),
  secrets: () => new Set(),
  forgetUnused: async () => {},
};

/** A source's dependencies, and everything that it delivered. */
export class SourceHarness {
  readonly clock = new ManualClock();
  readonly journal = new MemoryRecorder();
  readonly log = silentLog;
  readonly nodeName = "node1";
  storage: RunStorage = noStorage;
  readonly delivered: SourceState[] = [];

  deliver = (state: SourceState): void => {
    this.delivered.push(state);
  };

  /** Names and images of the last delivery. */
  get pods(): string[] | undefined {
    return this.delivered.at(-1)?.pods.map(({ pod }) => `${pod.metadata.name} ${pod.spec.containers[0]?.image ?? ""}`);
  }
}

/** A small pod's manifest. */
export function podYaml(name: string, image = "busybox"): string {
  return `apiVersion: v1
kind: Pod
metadata:
  name: ${name}
spec:
  containers:
  - name: c
    image: ${image}
`;
}
