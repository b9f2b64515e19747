import { ExitCode, PodwrightError } from "../base/errors.ts";
import type { ClaimView } from "../server/local-api.ts";
import { podLabel } from "../server/pod-selector.ts";
import { claimLabel } from "./claim-label.ts";
import { ownCommand } from "./own-command.ts";

type UsedClaim = Pick<ClaimView, "namespace" | "name" | "usedBy">;

/** The error for a claim that pods of a running engine use; undefined: none does. Pure. */
export function usedError(stateDirectory: string, claim: UsedClaim): PodwrightError | undefined {
  const pods = labels(claim.usedBy);
  if (pods.length === 0) return undefined;
  return refusal(claim, pods.join(", "), `'${ownCommand(stateDirectory, "stop", ...pods)}' first`);
}

/**
 * The same while no engine runs, so that no pod can be stopped either.
 * @param stopping pods whose stop was requested, and that no engine has removed
 */
export function usedWithoutEngine(
  stateDirectory: string,
  claim: UsedClaim,
  stopping: UsedClaim["usedBy"],
): PodwrightError | undefined {
  const uids = new Set(stopping.map(({ uid }) => uid));
  const left = labels(claim.usedBy.filter(({ uid }) => uids.has(uid)));
  const wanted = labels(claim.usedBy.filter(({ uid }) => !uids.has(uid)));
  const start = `start the engine ('${ownCommand(stateDirectory, "run", "--detach")}')`;
  if (wanted.length > 0) {
    const stop = ownCommand(stateDirectory, "stop", ...wanted);
    return refusal(claim, [...new Set([...wanted, ...left])].join(", "), `${start}, then '${stop}'`);
  }
  if (left.length === 0) return undefined;
  const were = left.length === 1 ? "which was" : "which were";
  const users = `${left.join(", ")}, ${were} being stopped when the engine ended`;
  return refusal(claim, users, `${start}: it completes the stop; then try again`);
}

/** A pod and its successor have one label. */
function labels(pods: UsedClaim["usedBy"]): string[] {
  return [...new Set(pods.map(podLabel))];
}

function refusal(claim: UsedClaim, users: string, remedy: string): PodwrightError {
  return new PodwrightError(ExitCode.failed, `claim ${claimLabel(claim)} is used by ${users}`, { remedy });
}
