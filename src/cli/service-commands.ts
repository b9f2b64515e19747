import { ExitCode, PodwrightError } from "../base/errors.ts";
import type { StateOptions } from "./context.ts";
import { disableCommand } from "./disable.ts";
import { enableCommand } from "./enable.ts";
import { disableKubelet, enableKubelet } from "./enable-kubelet.ts";
import { kubeletDoctor } from "./join.ts";
import type { MachineContext } from "./machine-context.ts";
import { systemPlaces } from "./service-units.ts";

export { joinCommand, leaveCommand } from "./join.ts";
export { systemPlaces } from "./service-units.ts";

export interface EnableOptions extends StateOptions {
  /** The file of a KubeletConfiguration. */
  readonly kubelet?: string;
}

export interface DisableOptions extends StateOptions {
  readonly kubelet?: true;
}

/** `podwright enable`, for manifests or the kubelet. */
export async function enable(
  context: MachineContext,
  files: readonly string[],
  { kubelet }: EnableOptions,
): Promise<ExitCode> {
  if (files.length > 0 === (kubelet !== undefined)) {
    throw new PodwrightError(ExitCode.badInput, "specify either manifests or --kubelet CONFIG");
  }
  if (kubelet !== undefined) return await enableKubelet(context, kubelet, systemPlaces());
  return await enableCommand(context, files, systemPlaces());
}

/** `podwright disable`, for manifests or the kubelet. */
export async function disable(
  context: MachineContext,
  files: readonly string[],
  { kubelet }: DisableOptions,
): Promise<ExitCode> {
  if (kubelet === undefined) return await disableCommand(context, files, systemPlaces());
  if (files.length === 0) return await disableKubelet(context, systemPlaces());
  throw new PodwrightError(ExitCode.badInput, "specify either names of manifests or --kubelet");
}

export interface KubeletDoctorOptions extends StateOptions {
  readonly json?: true;
  readonly runtimeEndpoint?: string;
}

/** `podwright doctor --kubelet`: by the node's own files. */
export async function kubeletDoctorCommand(
  context: MachineContext,
  { json, runtimeEndpoint, stateDir }: KubeletDoctorOptions,
): Promise<ExitCode> {
  if (runtimeEndpoint === undefined && stateDir === undefined) {
    return await kubeletDoctor(context, json === true, systemPlaces());
  }
  throw new PodwrightError(ExitCode.badInput, "--kubelet goes with neither --runtime-endpoint nor --state-dir", {
    remedy: "omit them: the kubelet's own files name its runtime and its root directory",
  });
}
