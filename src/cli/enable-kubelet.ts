import { join, resolve } from "node:path/posix";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import { shellWord } from "../base/shell-word.ts";
import { parseKubeletFlags } from "../config/flags.ts";
import { loadConfiguration } from "../config/load.ts";
import { openCgroups } from "../linux/cgroups/cgroups.ts";
import type { MachineContext } from "./machine-context.ts";
import { ownProgram } from "./own-command.ts";
import { kubeletService, kubeletUnit, type ServicePlaces } from "./service-units.ts";
import { isActive, removeUnit, requireSystemd, systemctl, writeUnit } from "./services.ts";

type ServiceContext = Pick<MachineContext, "files" | "processes" | "terminal" | "clock">;

/** `podwright enable --kubelet`: runs `podwright kubelet` with this configuration, now and after each boot. */
export async function enableKubelet(context: ServiceContext, config: string, places: ServicePlaces): Promise<ExitCode> {
  const { files, processes, terminal, clock } = context;
  const path = resolve(process.cwd(), config);
  const { version: cgroupVersion } = await openCgroups(clock);
  const reading = { files, workingDirectory: process.cwd(), cgroupVersion };
  await loadConfiguration(reading, parseKubeletFlags(["--config", path]));
  await requireSystemd(context, places, `podwright kubelet --config ${shellWord(path)}`);
  if (await isActive(processes, "kubelet.service")) {
    throw new PodwrightError(ExitCode.environment, "kubelet.service runs on this machine, which can have one kubelet", {
      remedy: "podwright join --from-kubeadm takes its place; or: systemctl disable --now kubelet",
    });
  }
  await writeUnit(context, join(places.units, kubeletService), kubeletUnit(places, ["--config", path]));
  await systemctl(processes, ["enable", "--quiet", kubeletService]);
  await systemctl(processes, ["restart", kubeletService]);
  terminal.print(
    [
      `enabled: ${kubeletService} runs now and after each boot`,
      `  systemctl status ${kubeletService}`,
      `  ${ownProgram()} ps --state-dir /var/lib/kubelet/podwright`,
      `  journalctl -u ${kubeletService}`,
    ].join("\n"),
  );
  return ExitCode.done;
}

/** `podwright disable --kubelet`. */
export async function disableKubelet(context: ServiceContext, places: ServicePlaces): Promise<ExitCode> {
  if (!(await removeUnit(context, places, kubeletService))) {
    throw new PodwrightError(ExitCode.badInput, `there is no ${kubeletService} that podwright wrote`);
  }
  context.terminal.print(`disabled: ${kubeletService}; its pods keep running`);
  return ExitCode.done;
}
