import type { Pod } from "../api/pod.ts";
import { errorMessage } from "../base/errors.ts";
import { type PodUid, podUid } from "../base/ids.ts";
import type { Recorder } from "../journal/entry.ts";
import type { Clock } from "../ports/clock.ts";
import type { Cri } from "../ports/cri.ts";
import { PodSandboxState } from "../ports/gen/runtime/v1/api_pb.js";
import type { Logger } from "../ports/log.ts";
import { Label } from "../runtime/config/labels.ts";
import type { SourceState } from "../sources/source.ts";

export interface WithoutServerDependencies {
  readonly clock: Clock;
  readonly journal: Recorder;
  readonly log: Logger;
  readonly runtime: Pick<Cri["runtime"], "listPodSandbox">;
  /** The API server's pods among the running ones, from their checkpoints. */
  readonly lastKnown: (running: readonly PodUid[]) => Promise<readonly Pod[]>;
  /** Whether the API server has listed its pods. */
  readonly isAnswered: () => boolean;
  readonly deliver: (state: SourceState) => void;
}

/** How long to wait for the server: with its response, statuses continue from their last state. */
const patienceMs = 10_000;
const retryMs = 1000;
const timeoutMs = 10_000;

/**
 * After a start without an API server, manages running pods of an earlier run: exited containers are restarted, probes
 * continue. Nothing that is not running is started, and no pod counts as an orphan; the server's list replaces all of
 * it. Never rejects.
 */
export async function takeUpWithoutServer(deps: WithoutServerDependencies, signal: AbortSignal): Promise<void> {
  const { clock, journal, log, runtime, lastKnown, isAnswered, deliver } = deps;
  await clock.sleep("the API server's pod list", patienceMs, signal).catch(() => {});
  while (!signal.aborted && !isAnswered()) {
    try {
      const filter = { state: { state: PodSandboxState.SANDBOX_READY } };
      const { items } = await runtime.listPodSandbox({ filter }, { signal, timeoutMs });
      const pods = await lastKnown(items.map(({ labels }) => podUid(labels[Label.podUid] ?? "")));
      if (isAnswered() || signal.aborted) return;
      log.warn("no pod list from the API server yet; using last known pod specs", { pods: pods.length });
      const message = `no pod list from the API server yet; managing ${pods.length} running pods from their last known specs`;
      journal.record({ kind: "note", what: "LastKnownPods", message });
      const placed = pods.map((pod) => {
        const { namespace, name } = pod.metadata;
        return { pod, place: `the last known spec of pod ${namespace}/${name}` };
      });
      // Not complete: what is not among them may be wanted all the same.
      deliver({ pods: placed, complete: false });
      return;
    } catch (error) {
      if (!signal.aborted) log.warn("cannot list running pods yet", { error: errorMessage(error) });
    }
    await clock.sleep("retry of listing running pods", retryMs, signal).catch(() => {});
  }
}
