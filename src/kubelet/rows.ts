import { onAbort } from "../base/abort.ts";
import { LogRotation } from "../logs/rotation.ts";
import { OomRecord } from "../oom/oom-record.ts";
import { watchOom } from "../oom/oom-watcher.ts";
import { runEvented } from "../pleg/evented.ts";
import { runningLogs } from "../runtime/status/running-logs.ts";
import type { KubeletConfig } from "./config.ts";
import type { KubeletDependencies } from "./dependencies.ts";
import type { Manager } from "./manager.ts";
import type { Managers } from "./managers.ts";

/**
 * Everything that a kubelet loads, runs, closes and notifies of removed pods, in start order. A manager that no other
 * uses is built here.
 */
export function managerRows(
  { ports, cri, journal, journaled, log, rooms = [] }: KubeletDependencies,
  { node, logRotation }: KubeletConfig,
  managers: Managers,
): Manager[] {
  const { acting, allocations, endings, garbage, housekeeping, pleg, podCgroups, pods, probes, statuses, syncLoop } =
    managers;
  const { clock, files, compression, kernelLog } = ports;
  const allKnown = async (): Promise<void> => await managers.startUp.when("allKnown");
  const record = new OomRecord({ files, log, journaled, directory: `${node.rootDirectory}/podwright` });
  return [
    statuses,
    probes,
    allocations,
    podCgroups,
    pleg,
    { run: (signal) => runEvented(cri, pleg, clock, log.child({ component: "pleg" }), signal) },
    endings,
    syncLoop,
    housekeeping,
    new LogRotation(
      {
        clock,
        files,
        compression,
        runtime: cri.runtime,
        journal,
        log: log.child({ component: "logs" }),
        running: () => pods.observed().flatMap((status) => runningLogs(status, node.podLogsRoot)),
      },
      logRotation,
    ),
    garbage,
    acting.volumes,
    // At once, as the rooms cancel the calls of their drivers then: what they are for would seem to have failed.
    { run: async (signal) => void onAbort(signal, () => acting.volumes.cancel()) },
    acting.volumeStats,
    ...(acting.quotas === undefined ? [] : [acting.quotas]),
    { close: async () => acting.storageWaits.close() },
    ...rooms,
    {
      run: (signal) =>
        watchOom({ clock, kernelLog, record, journal, log, allKnown, pods: () => pods.observed() }, signal),
    },
  ];
}
