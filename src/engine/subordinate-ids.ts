import { errorMessage, ExitCode, PodwrightError } from "../base/errors.ts";
import type { Processes } from "../ports/processes.ts";
import { defaultPodIds, type PodIds } from "../runtime/config/id-ranges.ts";

const user = "kubelet";
const askLimitMs = 30_000;
/** getent(1): no such user. */
const noSuchUser = 2;

/**
 * The ids of this machine that pods with user namespaces get: those that are subordinate to the user `kubelet`
 * (subuid(5)), or all but the lowest when there is no such user or no `getsubids` to ask.
 * @param maxPods how many pods they have to be enough for
 * @throws PodwrightError (environment) when the user is there and its ids can't be used, in upstream's words
 */
export async function subordinateIds(
  processes: Pick<Processes, "run">,
  perPod: number,
  maxPods: number,
): Promise<PodIds> {
  const range = (await userIsKnown(processes)) ? await askSubordinateIds(processes) : undefined;
  if (range === undefined) return defaultPodIds(perPod);
  const { first, length } = range;
  if (first % perPod !== 0) refuse(`kubelet user assigned ID ${first} is not a multiple of ${perPod}`);
  if (first < perPod) refuse(`kubelet user assigned ID ${first} must be greater or equal to ${perPod}`);
  if (length % perPod !== 0) refuse(`kubelet user assigned IDs length ${length} is not a multiple of ${perPod}`);
  if (length / perPod < maxPods) refuse(`kubelet user assigned IDs are not enough to support ${maxPods} pods`);
  return { first, length, perPod };
}

/** The user's entry may come from a directory service: when that is unreachable, IDs must not be made up. */
async function userIsKnown(processes: Pick<Processes, "run">): Promise<boolean> {
  const outcome = await ask(processes, "getent", ["passwd", user]);
  if (outcome === undefined || outcome.exitCode === noSuchUser) return false;
  if (outcome.exitCode !== 0) refuse(`cannot look up user ${user}: ${outcome.stderr.trim()}`);
  return true;
}

/** Undefined without getsubids. */
async function askSubordinateIds(
  processes: Pick<Processes, "run">,
): Promise<{ readonly first: number; readonly length: number } | undefined> {
  const users = await ask(processes, "getsubids", [user]);
  if (users === undefined) return undefined;
  if (users.exitCode !== 0) refuse(`error retrieving additional uids for user "${user}": ${users.stderr.trim()}`);
  const groups = await ask(processes, "getsubids", ["-g", user]);
  if (groups?.exitCode !== 0) refuse(`error retrieving additional gids for user "${user}": ${groups?.stderr.trim()}`);
  if (users.stdout !== groups.stdout) refuse(`mismatched subuids and subgids for user "${user}"`);
  // `0: kubelet 65536 2147483648`, one line for each of the user's ranges
  const match = /^\s*\S+\s+\S+\s+(?<first>\d{1,10})\s+(?<length>\d{1,10})\s*$/u.exec(users.stdout);
  if (match === null) refuse(`error parsing ${JSON.stringify(users.stdout)}: it must contain only one line`);
  return { first: Number(match.groups?.["first"]), length: Number(match.groups?.["length"]) };
}

/** Undefined when there is no such program. */
async function ask(
  processes: Pick<Processes, "run">,
  program: string,
  arguments_: readonly string[],
): Promise<{ readonly exitCode: number | undefined; readonly stdout: string; readonly stderr: string } | undefined> {
  try {
    return await processes.run(program, arguments_, { timeoutMs: askLimitMs });
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    return refuse(`cannot run ${program}: ${errorMessage(error)}`);
  }
}

function refuse(why: string): never {
  throw new PodwrightError(ExitCode.environment, `kubelet mappings: ${why}`, {
    remedy: `configure one range for user ${user} in /etc/subuid and the same in /etc/subgid, e.g. ${user}:65536:7208960`,
  });
}
