import { resolve } from "node:path/posix";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import { cloudOptions } from "../config/cloud-options.ts";
import { kubeletSettings } from "../config/settings.ts";
import { checkReservations } from "../engine/kubelet-config.ts";
import { checkReservedProcessors } from "../engine/reserved-processors.ts";
import { isSwapOn } from "../linux/processes/own-process.ts";
import { kubeletPlace } from "../private-runtime/kubelet-place.ts";
import type { Daemon } from "./daemon.ts";
import { machineInfo } from "./machine-info.ts";
import { checkAccess } from "./node-access.ts";
import { readClientAuthorities } from "./serving-certificates.ts";

/** A requirement of the kubelet's start. */
export interface StartCheck {
  /** What it is about, for `podwright doctor --kubelet`. */
  readonly name: string;
  /** Rejects with a PodwrightError. Changes nothing. */
  readonly check: () => Promise<void>;
}

export type StartCheckParts = Pick<Daemon, "configuration" | "flags" | "ports" | "served">;

/** What the machine, its files and the flags must have before the kubelet waits for anything. */
export function startChecks({ ports, configuration, flags, served }: StartCheckParts): readonly StartCheck[] {
  const check = (name: string, work: () => Promise<void>): StartCheck => ({ name, check: work });
  return [
    // The disk may not be there yet: its reservations are checked once more with the node.
    check("reservations", async () => {
      checkReservations(kubeletSettings(configuration, flags), await machineInfo(ports, rootDirectoryOf(flags)));
    }),
    check("cloud provider", async () => void cloudOptions(flags)),
    check("client CA", async () => void (served && (await readClientAuthorities(ports.files, served)))),
    check("access", async () => served && (await checkAccess(ports.files, served, flags))),
    check("reserved CPUs", async () => checkReservedProcessors(ports.files, configuration.reservedSystemCPUs)),
    check("root", async () => refuseOthers()),
    check("swap", async () => refuseSwap(configuration.failSwapOn)),
    check("lock file", async () => checkContention(flags)),
  ];
}

/** `--root-dir`. */
export function rootDirectoryOf({ rootDir }: Daemon["flags"]): string {
  return resolve(process.cwd(), rootDir || kubeletPlace);
}

function refuseOthers(): void {
  if (process.getuid?.() === 0) return;
  throw new PodwrightError(ExitCode.environment, "running pods requires root", {
    remedy: "run it with sudo",
  });
}

async function refuseSwap(failSwapOn: boolean): Promise<void> {
  if (!failSwapOn || !(await isSwapOn())) return;
  throw new PodwrightError(
    ExitCode.environment,
    "running with swap on is not supported, please disable swap or set --fail-swap-on flag to false",
  );
}

function checkContention({ lockFile = "", exitOnLockContention = false }: Daemon["flags"]): void {
  if (lockFile !== "" || !exitOnLockContention) return;
  throw new PodwrightError(ExitCode.badInput, "cannot exit on lock file contention: no lock file specified", {
    remedy: "give --lock-file",
  });
}
