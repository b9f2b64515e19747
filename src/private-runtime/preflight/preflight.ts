import { ExitCode, PodwrightError, errorMessage } from "../../base/errors.ts";
import type { ContainerdSettings, NetworkSettings } from "../containerd-config.ts";
import { findPrograms } from "../programs.ts";
import type { Programs } from "../programs.ts";
import { failed, oneLine } from "./check.ts";
import type { Check, CheckContext } from "./check.ts";
import { checkCapabilities, checkCgroups, checkPlatform, checkRoot, hasCapability, readOwnStatus } from "./machine.ts";
import { checkIptables, checkPrograms, checkTools } from "./programs.ts";
import { checkDisk, checkOverlay, checkPropagation, checkStateDirectory } from "./storage.ts";

/** What the checks learned that the private runtime is set up with. */
export type MachineFacts = Pick<ContainerdSettings, "mayLowerOomScore"> &
  Pick<NetworkSettings, "openForwarding"> & { readonly programs: Programs };

/** The findings in the order of looking, and, when none has failed, what was learned. */
export interface Preflight {
  readonly checks: readonly Check[];
  readonly facts: MachineFacts | undefined;
}

type Finding = Check | readonly Check[];

/** Makes a check and records its finding; false if some of it failed. */
type Add = (name: string, check: () => Finding | Promise<Finding>) => Promise<boolean>;

function into(checks: Check[]): Add {
  return async (name, check) => {
    const found = [await settle(name, check)].flat();
    checks.push(...found);
    return found.every(({ ok }) => ok !== "failed");
  };
}

/** The machine's requirements with a given runtime. As {@link preflight}. */
export async function preflightBesideRuntime(context: CheckContext): Promise<readonly Check[]> {
  const checks: Check[] = [];
  const add = into(checks);
  const status = await readOwnStatus(context);
  await add("platform", () => checkPlatform(status));
  if (status === undefined) return checks;
  const isRoot = await add("user", () => checkRoot(status));
  const isAble = isRoot && (await add("capabilities", () => checkCapabilities(status)));
  await add("control groups", () => checkCgroups(context));
  await add("programs", () => checkTools(context));
  if (isAble && (await add("state directory", () => checkStateDirectory(context)))) {
    await add("disk space", () => checkDisk(context));
  }
  await add("mount propagation", () => checkPropagation(context));
  return checks;
}

/**
 * Checks whether this machine can run pods, before anything is started. Only creates the state directory, unless
 * it only looks. A check whose outcome follows from an earlier failure is omitted, so that each cause is reported once.
 */
export async function preflight(context: CheckContext): Promise<Preflight> {
  const checks: Check[] = [];
  const add = into(checks);
  const status = await readOwnStatus(context);
  await add("platform", () => checkPlatform(status));
  if (status === undefined) return { checks, facts: undefined };

  const isRoot = await add("user", () => checkRoot(status));
  const isAble = isRoot && (await add("capabilities", () => checkCapabilities(status)));
  await add("control groups", () => checkCgroups(context));
  const found = await findPrograms(context.files, context.searchPath);
  await add("programs", () => checkPrograms(context, found));
  const mayMount = await add("programs", () => checkTools(context));
  if (!isAble) return { checks, facts: undefined };

  if (await add("state directory", () => checkStateDirectory(context))) {
    if (mayMount) await add("overlayfs", () => checkOverlay(context));
    await add("disk space", () => checkDisk(context));
    await add("mount propagation", () => checkPropagation(context));
  }
  let openForwarding = false;
  if ("programs" in found) {
    await add("iptables", async () => {
      const { check, dropsForwarded } = await checkIptables(context, found.programs);
      openForwarding = dropsForwarded;
      return check;
    });
  }
  const isComplete = "programs" in found && checks.every(({ ok }) => ok !== "failed");
  if (!isComplete) return { checks, facts: undefined };
  const mayLowerOomScore = hasCapability(status, "SYS_RESOURCE");
  return { checks, facts: { programs: found.programs, mayLowerOomScore, openForwarding } };
}

/** The facts; throws a PodwrightError (environment) with one line a failed check when there is one. */
export function requireReady({ checks, facts }: Preflight): MachineFacts {
  if (facts !== undefined) return facts;
  const problems = checks.filter(({ ok }) => ok === "failed");
  const [first] = problems;
  if (first !== undefined && problems.length === 1) {
    const { name, detail, remedy = "see 'podwright doctor'" } = first;
    throw new PodwrightError(ExitCode.environment, `${name}: ${detail}`, { remedy });
  }
  const lines = problems.map(({ name, detail, remedy }) => `${name}: ${detail}; ${remedy ?? "see 'podwright doctor'"}`);
  throw new PodwrightError(ExitCode.environment, lines.join("\n"));
}

/** A check that throws has failed. */
async function settle(name: string, check: () => Finding | Promise<Finding>): Promise<Finding> {
  try {
    return await check();
  } catch (error) {
    return failed(
      name,
      `check failed: ${oneLine(errorMessage(error))}`,
      "run 'podwright doctor' again, and report it if it persists",
    );
  }
}
