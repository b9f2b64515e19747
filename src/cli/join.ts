import { dirname, join } from "node:path/posix";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import { shellWord } from "../base/shell-word.ts";
import { removeEmpty } from "../ports/files.ts";
import { openCgroups } from "../linux/cgroups/cgroups.ts";
import type { Check } from "../private-runtime/preflight/check.ts";
import { asTyped, doctorLines } from "./doctor.ts";
import { type InstalledKubelet, installedKubelet, kubeletFindings } from "./kubelet-findings.ts";
import type { MachineContext } from "./machine-context.ts";
import { isOurs, systemctl, writeUnit } from "./services.ts";
import { kubeletDropIn, type ServicePlaces } from "./service-units.ts";

export interface JoinOptions {
  readonly fromKubeadm?: true;
  readonly dryRun?: true;
}

const kubeletService = "kubelet.service";
const dropInName = "90-podwright.conf";

/**
 * `podwright join --from-kubeadm`: makes kubelet.service start podwright, with the same flags, files and identity. Containers keep
 * running. Nothing is changed if podwright would reject the configuration.
 */
export async function joinCommand(
  context: MachineContext,
  options: JoinOptions,
  places: ServicePlaces,
): Promise<ExitCode> {
  const { terminal, files, processes } = context;
  if (options.fromKubeadm !== true) {
    throw new PodwrightError(ExitCode.badInput, "'join' needs --from-kubeadm", {
      remedy: "it also serves other nodes with a kubelet.service; elsewhere: podwright enable --kubelet",
    });
  }
  const { kubelet, checks, exitCode } = await examine(context, places);
  terminal.print(doctorLines(checks, undefined, undefined, terminal.paint).join("\n"));
  if (exitCode !== ExitCode.done) return exitCode;
  const path = dropInPath(places);
  const command = [places.launcher, "kubelet", ...kubelet.words];
  const planned = `${path}: ${kubeletService} starts ${command.map(shellWord).join(" ")}`;
  terminal.print(`${options.dryRun === true ? "would write" : "writing"} ${planned}`);
  if (options.dryRun === true) return ExitCode.done;
  const wasJoined = (await files.stat(path)) !== undefined;
  await files.makeDirectory(dirname(path), 0o755);
  try {
    await writeUnit(context, path, kubeletDropIn(places, kubelet.parameters));
  } catch (error) {
    await removeEmpty(files, dirname(path)).catch(() => {});
    throw error;
  }
  try {
    await systemctl(processes, ["restart", kubeletService]);
  } catch (error) {
    if (wasJoined) throw error;
    await giveBack(context, path);
    throw new PodwrightError(
      ExitCode.failed,
      `podwright did not start as ${kubeletService}, which has its earlier kubelet again`,
      {
        cause: error,
        remedy: `see: journalctl -u ${kubeletService}`,
      },
    );
  }
  terminal.print("joined: podwright is this node's kubelet, its containers keep running; 'podwright leave' undoes it");
  return ExitCode.done;
}

/** `podwright leave`: makes kubelet.service start the earlier kubelet again, which takes over the running containers. */
export async function leaveCommand(context: MachineContext, places: ServicePlaces): Promise<ExitCode> {
  const { terminal, files } = context;
  const path = dropInPath(places);
  if ((await files.stat(path)) === undefined) {
    throw new PodwrightError(ExitCode.badInput, `this node was not joined by podwright: ${path} is missing`);
  }
  if (!(await isOurs(files, path))) throw new PodwrightError(ExitCode.failed, `${path} was not written by podwright`);
  await giveBack(context, path);
  terminal.print(`left: ${kubeletService} starts the earlier kubelet again, its containers keep running`);
  return ExitCode.done;
}

async function giveBack({ files, processes }: MachineContext, dropIn: string): Promise<void> {
  await files.remove(dropIn);
  await removeEmpty(files, dirname(dropIn));
  await systemctl(processes, ["daemon-reload"]);
  await systemctl(processes, ["restart", kubeletService]);
}

/** `podwright doctor --kubelet`: the checks of `join`, without changes. */
export async function kubeletDoctor(context: MachineContext, json: boolean, places: ServicePlaces): Promise<ExitCode> {
  const { terminal } = context;
  const { checks, exitCode } = await examine(context, places);
  if (json) terminal.print(JSON.stringify({ checks, engine: null }, undefined, 2));
  else terminal.print(doctorLines(checks, undefined, undefined, terminal.paint).join("\n"));
  return exitCode;
}

/** @throws PodwrightError when the machine has no kubelet, or its unit can't be read */
async function examine(
  context: MachineContext,
  { booted }: ServicePlaces,
): Promise<{
  readonly kubelet: InstalledKubelet;
  readonly checks: readonly Check[];
  readonly exitCode: ExitCode;
}> {
  if ((await context.files.stat(booted)) === undefined) {
    throw new PodwrightError(ExitCode.environment, "systemd is not process 1, so this machine has no kubelet.service", {
      remedy: "where another init starts the kubelet, let it start podwright kubelet with the same flags",
    });
  }
  const kubelet = await installedKubelet(context);
  if (kubelet === undefined) {
    throw new PodwrightError(ExitCode.environment, `this machine has no ${kubeletService} that starts a kubelet`, {
      remedy: "on a node without one: podwright enable --kubelet",
    });
  }
  const found = await kubeletFindings(context, kubelet, (await openCgroups(context.clock)).version);
  const checks = asTyped(found, undefined);
  const exitCode = checks.some(({ ok }) => ok === "failed") ? ExitCode.environment : ExitCode.done;
  return { kubelet, checks, exitCode };
}

function dropInPath({ units }: ServicePlaces): string {
  return join(units, `${kubeletService}.d`, dropInName);
}
