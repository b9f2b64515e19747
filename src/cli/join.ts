import { join } from "node:path/posix";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import { openCgroups } from "../linux/cgroups/cgroups.ts";
import { doctorLines } from "./doctor.ts";
import { installedKubelet, kubeletFindings } from "./kubelet-findings.ts";
import type { MachineContext } from "./machine-context.ts";
import { isOurs, requireSystemd, systemctl, writeUnit } from "./services.ts";
import { kubeletDropIn, type ServicePlaces } from "./service-units.ts";

export interface JoinOptions {
  readonly fromKubeadm?: true;
  readonly dryRun?: true;
}

const kubeletService = "kubelet.service";
const dropInName = "90-podwright.conf";

/**
 * `podwright join --from-kubeadm`: podwright becomes what kubelet.service starts, with the same flags, files and identity. Pods and
 * containers run on. Nothing is changed when podwright would refuse the configuration.
 */
export async function joinCommand(
  context: MachineContext,
  options: JoinOptions,
  places: ServicePlaces,
): Promise<ExitCode> {
  const { terminal, files, processes, clock } = context;
  if (options.fromKubeadm !== true) {
    throw new PodwrightError(ExitCode.badInput, "say from where: podwright join --from-kubeadm", {
      remedy: "docs/join.md has the other ways",
    });
  }
  await requireSystemd(context, places, "podwright kubelet with the kubelet's flags");
  const kubelet = await installedKubelet(context);
  if (kubelet === undefined) throw noKubelet();
  const checks = await kubeletFindings(context, kubelet, (await openCgroups(clock)).version);
  terminal.print(doctorLines(checks, undefined, undefined, terminal.paint).join("\n"));
  if (checks.some(({ ok }) => ok === "failed")) return ExitCode.environment;
  const path = dropInPath(places);
  const planned = `${path}: ${kubeletService} starts ${places.launcher} kubelet ${kubelet.words.join(" ")}`;
  terminal.print(`${options.dryRun === true ? "would write" : "writing"} ${planned}`);
  if (options.dryRun === true) return ExitCode.done;
  await files.makeDirectory(join(places.units, `${kubeletService}.d`), 0o755);
  await writeUnit(context, path, kubeletDropIn(places, kubelet.parameters));
  await systemctl(processes, ["restart", kubeletService]);
  terminal.print("joined; its containers run on. Back: podwright leave");
  return ExitCode.done;
}

/** `podwright leave`: kubelet.service starts the Go kubelet again, which takes over the containers that run. */
export async function leaveCommand(context: MachineContext, places: ServicePlaces): Promise<ExitCode> {
  const { terminal, files, processes } = context;
  const path = dropInPath(places);
  if ((await files.stat(path)) === undefined) {
    throw new PodwrightError(ExitCode.badInput, "this node was not joined by podwright", {
      remedy: `${path} is missing`,
    });
  }
  if (!(await isOurs(files, path))) throw new PodwrightError(ExitCode.failed, `${path} was not written by podwright`);
  await files.remove(path);
  await systemctl(processes, ["daemon-reload"]);
  await systemctl(processes, ["restart", kubeletService]);
  terminal.print(`left; ${kubeletService} is the one before, and the containers run on`);
  return ExitCode.done;
}

/** `podwright doctor --kubelet`: what would be different, before anything is changed. */
export async function kubeletDoctor(context: MachineContext, json: boolean): Promise<ExitCode> {
  const { terminal, clock } = context;
  const kubelet = await installedKubelet(context).catch(() => undefined);
  if (kubelet === undefined) throw noKubelet();
  const checks = await kubeletFindings(context, kubelet, (await openCgroups(clock)).version);
  if (json) terminal.print(JSON.stringify({ checks, engine: null }, undefined, 2));
  else terminal.print(doctorLines(checks, undefined, undefined, terminal.paint).join("\n"));
  return checks.some(({ ok }) => ok === "failed") ? ExitCode.environment : ExitCode.done;
}

function dropInPath({ units }: ServicePlaces): string {
  return join(units, `${kubeletService}.d`, dropInName);
}

function noKubelet(): PodwrightError {
  return new PodwrightError(ExitCode.environment, `this machine has no ${kubeletService} that starts a kubelet`, {
    remedy: "see docs/join.md for nodes without kubeadm",
  });
}
