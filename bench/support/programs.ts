import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { open } from "node:fs/promises";
import { dirname, join } from "node:path";
import { mallocSettings, nodeFlags } from "../../scripts/launch.ts";
import type { BenchOptions } from "./options.ts";

/** podwright with these arguments, as bin/podwright starts it. */
export async function startPodwright(
  args: readonly string[],
  options: BenchOptions,
  logPath: string,
): Promise<ChildProcess> {
  const profile = options.cpuProfile === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${options.cpuProfile}`];
  const { allocationProfile } = options;
  const allocations = allocationProfile === undefined ? [] : ["--import", join(import.meta.dirname, "allocations.ts")];
  const flags = [...nodeFlags, ...profile, ...allocations];
  return await startProgram(process.execPath, [...flags, options.program, ...args], options, logPath);
}

/**
 * Starts a node's program, which finds the runtime's programs in its PATH and writes to the log. It has its own
 * session, so that Ctrl-C reaches only the bench, which then cleans up.
 */
export async function startProgram(
  program: string,
  args: readonly string[],
  options: BenchOptions,
  logPath: string,
): Promise<ChildProcess> {
  const log = await open(logPath, "a");
  try {
    const path = `${dirname(options.containerd)}:${process.env["PATH"] ?? ""}`;
    const child = spawn(program, args, {
      cwd: "/",
      detached: true,
      // A Go program ignores them.
      env: { ...process.env, ...mallocSettings, PATH: path, ALLOCATION_PROFILE: options.allocationProfile },
      stdio: ["ignore", log.fd, log.fd],
    });
    await once(child, "spawn");
    return child;
  } finally {
    await log.close();
  }
}
