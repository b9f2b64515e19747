import { errorMessage } from "../base/errors.ts";
import type { Recorder } from "../journal/entry.ts";
import type { KernelLog } from "../ports/kernel-log.ts";
import type { Logger } from "../ports/log.ts";
import { isCgroupOfPod } from "../resources/cgroup-names.ts";
import type { PodStatus } from "../runtime/status/pod-status.ts";
import { OomReader, type OomVictim } from "./oom-report.ts";

export interface OomWatcherDependencies {
  readonly kernelLog: KernelLog;
  readonly journal: Recorder;
  readonly log: Logger;
  /** This node's pods as last observed. */
  readonly pods: () => readonly PodStatus[];
}

/**
 * Reports OOM kills until the signal aborts: any while the machine was out of memory (SystemOOM, pkg/kubelet/oom
 * upstream), and those in pods, whose containers may survive them, so that nothing else would report them.
 */
export async function watchOom(deps: OomWatcherDependencies, signal: AbortSignal): Promise<void> {
  const reader = new OomReader();
  try {
    for await (const line of deps.kernelLog.follow(signal)) {
      const victim = reader.read(line);
      if (victim !== undefined) tell(deps, victim);
    }
  } catch (error) {
    if (signal.aborted) return;
    deps.log.warn("cannot read kernel messages; OOM kills will not be reported", { error: errorMessage(error) });
  }
}

function tell({ journal, pods }: OomWatcherDependencies, { pid, name, ofMachine, cgroup = "/" }: OomVictim): void {
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
      ...(ofMachine && { nodeMessage: `System OOM encountered, victim process: ${name}, pid: ${pid}` }),
    },
  });
}
