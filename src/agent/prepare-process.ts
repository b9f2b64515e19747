import { errorMessage } from "../base/errors.ts";
import { release } from "node:os";
import { machineWarnings } from "../config/machine-warnings.ts";
import { uselessNameServers, uselessThresholds } from "../config/settings.ts";
import { openFilesLimit, setOomScoreAdjust } from "../linux/processes/own-process.ts";
import type { Daemon } from "./daemon.ts";

/** Warns of what the machine lacks, and applies settings to this process. */
export async function prepareProcess({ ports, log, configuration }: Daemon): Promise<void> {
  if (ports.cgroups.version === 1) {
    log.warn("cgroup v1 detected. cgroup v1 support is deprecated; please migrate to cgroup v2");
  }
  for (const warning of machineWarnings(configuration, ports.cgroups.version, release())) log.warn(warning);
  for (const signal of uselessThresholds(configuration)) {
    log.warn("ignoring the containerfs eviction threshold: that of nodefs or imagefs applies", { signal });
  }
  for (const address of uselessNameServers(configuration)) {
    log.warn("ignoring an invalid IP address in clusterDNS", { address });
  }
  await setOomScoreAdjust(configuration.oomScoreAdj).catch((error: unknown) => {
    log.info("cannot apply oomScoreAdj", { oomScoreAdj: configuration.oomScoreAdj, error: errorMessage(error) });
  });
  const maxOpenFiles = await openFilesLimit();
  if (maxOpenFiles < configuration.maxOpenFiles) {
    log.info("open file limit of this process is below maxOpenFiles", {
      limit: maxOpenFiles,
      maxOpenFiles: configuration.maxOpenFiles,
    });
  }
}
