import { shellWord } from "../base/shell-word.ts";
import { stateOption } from "../private-runtime/layout.ts";

/** How this program was called, e.g. `bin/podwright` where PATH has no podwright: the launcher says so. */
export function ownProgram(): string {
  return shellWord(process.env["PODWRIGHT_CALLED_AS"] || "podwright");
}

/**
 * A command as it is typed to reach the engine of this state directory, e.g. `podwright stop --state-dir /srv/pods web`.
 * @param command the command and its operands, e.g. `["stop", "web"]`
 */
export function ownCommand(stateDirectory: string, ...[verb, ...operands]: readonly [string, ...string[]]): string {
  return [ownProgram(), verb, ...stateOption(stateDirectory), ...operands].join(" ");
}
