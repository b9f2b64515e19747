import { withDeadline } from "../base/deadline.ts";
import { errorMessage } from "../base/errors.ts";
import type { Recorder } from "../journal/entry.ts";
import type { Clock } from "../ports/clock.ts";
import type { KernelLog } from "../ports/kernel-log.ts";
import type { Logger } from "../ports/log.ts";
import { isCgroupOfPod } from "../resources/cgroup-names.ts";
import type { PodStatus } from "../runtime/status/pod-status.ts";
import type { OomRecord } from "./oom-record.ts";
import { OomReader, type OomVictim } from "./oom-report.ts";

/** Journal entries are written after 50 ms. */
const journaledMs = 200;
/** How long after the start a kill waits for the pods of earlier runs: one of them may have had the process. */
const unknownPodsMs = 60_000;

export interface OomWatcherDependencies {
  readonly clock: Clock;
  readonly kernelLog: KernelLog;
  readonly record: OomRecord;
  readonly journal: Recorder;
  readonly log: Logger;
  /** Resolves once {@link pods} includes the pods of earlier runs. */
  readonly allKnown: () => Promise<void>;
  /** This node's pods as last observed. */
  readonly pods: () => readonly PodStatus[];
}

/**
 * Reports OOM kills until the signal aborts: any while the machine was out of memory (SystemOOM, pkg/kubelet/oom
 * upstream), and those in pods, whose containers may survive them, so that nothing else would report them.
 */
export async function watchOom(deps: OomWatcherDependencies, signal: AbortSignal): Promise<void> {
  const { clock, kernelLog, record } = deps;
  const reader = new OomReader();
  /** The last kill that was reported and is not recorded yet. */
  let reported: number | undefined;
  let due: Disposable | undefined;
  // After the journal, so that a crash in between loses nothing: the next run finds the report in the journal.
  const saveOnceJournaled = (): void => {
    const last = reported;
    if (due !== undefined || last === undefined) return;
    const saveIt = async (): Promise<void> => {
      await record.save(last);
      due = undefined;
      if (reported === last) reported = undefined;
      // One reported meanwhile may not be in the journal yet.
      saveOnceJournaled();
    };
    due = clock.timer("an OOM kill to be journaled", journaledMs, () => void saveIt());
  };
  const save = async (): Promise<void> => {
    const last = reported;
    reported = undefined;
    due?.[Symbol.dispose]();
    if (last !== undefined) await record.save(last);
  };
  // From now on, so that a source that never delivers delays the first reports, and no others.
  const wait = "the pods that processes were killed in to be known";
  const known = withDeadline(clock, wait, unknownPodsMs, signal, deps.allKnown).catch(() => {});
  try {
    const after = await record.load();
    for await (const line of kernelLog.follow(after, signal)) {
      const { sequence, text } = line;
      // Marks the start of this run.
      if (text === "" && after === undefined) await record.save(sequence);
      const victim = reader.read(line);
      if (victim === undefined) continue;
      await known;
      // Not recorded: the next run reports it.
      if (signal.aborted) break;
      tell(deps, victim, sequence);
      reported = sequence;
      saveOnceJournaled();
    }
    await save();
  } catch (error) {
    if (signal.aborted) return await save();
    deps.log.warn("cannot read kernel messages; OOM kills will not be reported", { error: errorMessage(error) });
  }
}

function tell(
  { journal, pods, record }: OomWatcherDependencies,
  { pid, name, ofMachine, cgroup = "/" }: OomVictim,
  sequence: number,
): void {
  const status = pods().find(({ uid }) => isCgroupOfPod(cgroup, uid));
  if (status === undefined && !ofMachine) return;
  const container = status?.containers.find(({ id }) => cgroup.includes(id));
  const message = ofMachine
    ? `the kernel killed process ${name} (pid ${pid}): the machine was out of memory`
    : `the kernel killed process ${name}: the cgroup ${cgroup} was at its memory limit`;
  journal.record({
    kind: "observation",
    what: ofMachine ? "SystemOOM" : "OOMKilling",
    message,
    ...(status && { pod: { namespace: status.namespace, name: status.name, uid: status.uid } }),
    ...(container && { container: container.name }),
    data: {
      process: name,
      pid,
      sequence,
      boot: record.boot,
      ...(ofMachine && { nodeMessage: `System OOM encountered, victim process: ${name}, pid: ${pid}` }),
    },
  });
}
