import { join } from "node:path/posix";
import { errorMessage, ExitCode, PodwrightError } from "../base/errors.ts";
import type { Files } from "../ports/files.ts";
import type { CommandResult, Processes } from "../ports/processes.ts";
import { type ServicePlaces, unitMark } from "./service-units.ts";

/** systemctl waits until the service is ready, which may include starting containerd and importing images. */
const limitMs = 6 * 60_000;
const queryLimitMs = 30_000;
const maxUnitBytes = 64 * 1024;

interface ServiceContext {
  readonly files: Files;
  readonly processes: Pick<Processes, "run">;
}

/** @throws PodwrightError where systemd is not running */
export async function requireSystemd(
  { files }: Pick<ServiceContext, "files">,
  { booted }: ServicePlaces,
  instead: string,
): Promise<void> {
  if ((await files.stat(booted)) !== undefined) return;
  throw new PodwrightError(
    ExitCode.environment,
    "systemd is not process 1, so no service can start podwright at boot",
    {
      remedy: `have your init run: ${instead}`,
    },
  );
}

/** @throws PodwrightError when a unit that podwright did not write is there */
export async function requireOwnUnit(files: Files, path: string): Promise<void> {
  if ((await files.stat(path)) === undefined || (await isOurs(files, path))) return;
  throw new PodwrightError(ExitCode.failed, `${path} was not written by podwright`, { remedy: "move it away first" });
}

/**
 * Writes a unit, or changes nothing. @returns puts back what was there before; never rejects
 * @throws PodwrightError when one that podwright did not write is there
 */
export async function writeUnit(
  { files, processes }: ServiceContext,
  path: string,
  text: string,
): Promise<() => Promise<void>> {
  await requireOwnUnit(files, path);
  const before = (await files.stat(path)) === undefined ? undefined : await files.read(path, maxUnitBytes);
  const restore = async (): Promise<void> => {
    try {
      if (before === undefined) await files.remove(path);
      else await files.writeAtomic(path, before, 0o644);
      await systemctl(processes, ["daemon-reload"]);
    } catch {
      // The reason for undoing is reported.
    }
  };
  await files.writeAtomic(path, `${unitMark}\n${text}`, 0o644);
  try {
    await systemctl(processes, ["daemon-reload"]);
  } catch (error) {
    await restore();
    throw error;
  }
  return restore;
}

/** Stops and disables a service, and removes its unit. @returns false if podwright wrote none */
export async function removeUnit(
  { files, processes }: ServiceContext,
  { units, booted }: ServicePlaces,
  service: string,
): Promise<boolean> {
  if (!(await hasUnit(files, { units }, service))) return false;
  const isBooted = (await files.stat(booted)) !== undefined;
  if (isBooted) await systemctl(processes, ["disable", "--quiet", "--now", service]);
  await files.remove(join(units, service));
  if (isBooted) await systemctl(processes, ["daemon-reload"]);
  return true;
}

/** Whether podwright wrote a unit of the service. */
export async function hasUnit(
  files: Files,
  { units }: Pick<ServicePlaces, "units">,
  service: string,
): Promise<boolean> {
  const path = join(units, service);
  return (await files.stat(path)) !== undefined && (await isOurs(files, path));
}

/** Whether podwright wrote the unit or drop-in. */
export async function isOurs(files: Files, path: string): Promise<boolean> {
  return new TextDecoder().decode(await files.read(path, maxUnitBytes)).startsWith(unitMark);
}

export async function isActive(processes: Pick<Processes, "run">, service: string): Promise<boolean> {
  return (await askSystemctl(processes, ["is-active", "--quiet", service])).exitCode === 0;
}

/** Runs a query of `systemctl`. @throws PodwrightError when it cannot be run */
export async function askSystemctl(
  processes: Pick<Processes, "run">,
  words: readonly string[],
): Promise<CommandResult> {
  return await run(processes, words, queryLimitMs);
}

/** Runs `systemctl`. @throws PodwrightError with its message when it fails, or cannot be run */
export async function systemctl(processes: Pick<Processes, "run">, words: readonly string[]): Promise<void> {
  const { exitCode, stderr } = await run(processes, words, limitMs);
  if (exitCode === 0) return;
  const reason = stderr.trim() || `exit code ${exitCode}`;
  throw new PodwrightError(ExitCode.failed, `systemctl ${words.join(" ")}: ${reason}`, {
    remedy: `see: journalctl -u ${words.at(-1)}`,
  });
}

async function run(
  processes: Pick<Processes, "run">,
  words: readonly string[],
  timeoutMs: number,
): Promise<CommandResult> {
  // Its messages are parsed, so they must not be translated.
  return await processes
    .run("systemctl", words, { timeoutMs, environment: { LC_ALL: "C" } })
    .catch((error: unknown) => {
      throw new PodwrightError(ExitCode.environment, errorMessage(error), { cause: error });
    });
}
