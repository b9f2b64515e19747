import { errorMessage, ExitCode, PodwrightError } from "../base/errors.ts";
import { release } from "node:os";
import { cloudOptions } from "../config/cloud-options.ts";
import { machineWarnings } from "../config/machine-warnings.ts";
import { uselessNameServers, uselessThresholds } from "../config/settings.ts";
import { checkReservedProcessors } from "../engine/reserved-processors.ts";
import { isSwapOn, openFilesLimit, setOomScoreAdjust } from "../linux/processes/own-process.ts";
import type { Daemon } from "./daemon.ts";
import { checkAccess } from "./node-access.ts";
import { readClientAuthorities } from "./serving-certificates.ts";

/** Checks the machine before the start, and applies settings to this process. */
export async function checkMachine({ ports, log, configuration, flags, served }: Daemon): Promise<void> {
  cloudOptions(flags);
  if (served !== undefined) {
    await readClientAuthorities(ports.files, served);
    await checkAccess(ports.files, served, flags);
  }
  await checkReservedProcessors(ports.files, configuration.reservedSystemCPUs);
  if (process.getuid?.() !== 0) {
    throw new PodwrightError(ExitCode.environment, "running pods requires root", {
      remedy: "run it with sudo",
    });
  }
  if (configuration.failSwapOn && (await isSwapOn())) {
    throw new PodwrightError(
      ExitCode.environment,
      "running with swap on is not supported, please disable swap or set --fail-swap-on flag to false",
    );
  }
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
