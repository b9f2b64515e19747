import { ExitCode } from "../base/errors.ts";
import { podLabel } from "../server/pod-selector.ts";
import type { CommandContext } from "./context.ts";

/** `podwright retry POD`: ends the pod's back-offs. */
export async function retryCommand(
  { engine, terminal }: CommandContext,
  selector: string,
  options: { readonly json?: true },
): Promise<ExitCode> {
  const pod = await engine.retry(selector);
  const { namespace, name, uid } = pod;
  if (options.json === true) terminal.print(JSON.stringify({ retried: { namespace, name, uid } }, undefined, 2));
  else terminal.print(`retrying ${podLabel(pod)}; 'podwright why ${podLabel(pod)}' shows the result`);
  return ExitCode.done;
}
