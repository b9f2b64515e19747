import { ExitCode } from "../base/errors.ts";
import type { PodView } from "../server/local-api.ts";
import { podLabel } from "../server/pod-selector.ts";
import type { CommandContext } from "./context.ts";
import { ownCommand } from "./own-command.ts";

/** `podwright retry POD`: ends the pod's back-offs. */
export async function retryCommand(
  { engine, terminal, layout }: CommandContext,
  selector: string,
  options: { readonly json?: true },
): Promise<ExitCode> {
  const pod = await engine.retry(selector);
  const { namespace, name, uid } = pod;
  if (options.json === true) terminal.print(JSON.stringify({ retried: { namespace, name, uid } }, undefined, 2));
  else terminal.print(retryLine(pod, layout.stateDirectory));
  return ExitCode.done;
}

/** What happens now. */
export function retryLine(pod: Pick<PodView, "namespace" | "name" | "uid" | "state">, stateDirectory: string): string {
  const label = podLabel(pod);
  const why = `'${ownCommand(stateDirectory, "why", label)}' shows`;
  if (pod.state === "syncing") return `retrying ${label}; ${why} the result`;
  const state = pod.state === "terminating" ? "is being stopped" : "has ended";
  return `${label} ${state}: there is nothing to retry; ${why} the reason`;
}
