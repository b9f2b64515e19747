import { errorMessage, ExitCode, PodwrightError } from "../base/errors.ts";
import type { Files } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";

/** Required kernel settings by path below /proc/sys (upstream: setupKernelTunables). */
export const kernelSettings: Readonly<Record<string, number>> = {
  "vm/overcommit_memory": 1,
  "vm/panic_on_oom": 0,
  "kernel/panic": 10,
  "kernel/panic_on_oops": 1,
  "kernel/keys/root_maxkeys": 1_000_000,
  "kernel/keys/root_maxbytes": 25_000_000,
};

export interface KernelSettingsDependencies {
  readonly files: Pick<Files, "read" | "write">;
  readonly log: Logger;
}

/** What the kubelet may do about settings that differ. */
export interface KernelSettingsPolicy {
  /** protectKernelDefaults: they are only checked. */
  readonly isProtected: boolean;
  /** Feature gate KubeletInUserNamespace: there the kernel keeps its own. */
  readonly toleratesUserNamespace: boolean;
}

const maxBytes = 64;
/** Maps of user namespaces have a few lines of 33 bytes. */
const maxMapBytes = 4096;
/** The initial user namespace has all IDs: user_namespaces(7). */
const allIds = /^\s*0\s+0\s+4294967295\s*$/u;

/**
 * Sets the required kernel settings, or only checks them.
 * @throws PodwrightError (environment) for protected settings that differ, and settings that cannot be read or written
 */
export async function ensureKernelSettings(
  deps: KernelSettingsDependencies,
  policy: KernelSettingsPolicy,
): Promise<void> {
  const { isProtected } = policy;
  const problems: string[] = [];
  for (const [name, value] of Object.entries(kernelSettings)) {
    try {
      const problem = await ensureOne(deps, policy, name, value);
      if (problem !== undefined) problems.push(problem);
    } catch (error) {
      problems.push(errorMessage(error));
    }
  }
  if (problems.length === 0) return;
  const message = problems.length === 1 ? problems.join("") : `[${problems.join(", ")}]`;
  throw new PodwrightError(ExitCode.environment, message, {
    remedy: isProtected
      ? "set them with sysctl, or set protectKernelDefaults to false"
      : "set them with sysctl before the kubelet starts",
  });
}

async function ensureOne(
  { files, log }: KernelSettingsDependencies,
  { isProtected, toleratesUserNamespace }: KernelSettingsPolicy,
  name: string,
  value: number,
): Promise<string | undefined> {
  const path = `/proc/sys/${name}`;
  const present = Number(new TextDecoder().decode(await files.read(path, maxBytes)));
  if (present === value) return undefined;
  if (isProtected) return `invalid kernel flag: ${name}, expected value: ${value}, actual value: ${present}`;
  try {
    await files.write(path, String(value), 0o644);
    log.info("changed a kernel setting", { setting: name, from: present, to: value });
  } catch (error) {
    if (!toleratesUserNamespace || !(await isInUserNamespace(files))) throw error;
    const fields = { setting: name, value: present, error: errorMessage(error) };
    log.info("kept a kernel setting that a user namespace cannot change", fields);
  }
  return undefined;
}

async function isInUserNamespace(files: Pick<Files, "read">): Promise<boolean> {
  return !allIds.test(new TextDecoder().decode(await files.read("/proc/self/uid_map", maxMapBytes)));
}
