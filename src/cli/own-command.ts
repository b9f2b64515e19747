import { shellWord } from "../base/shell-word.ts";
import { stateOption } from "../private-runtime/layout.ts";

/** How this program was called, e.g. `bin/podwright` where PATH has no podwright: the launcher says so. */
export function ownProgram(): string {
  return shellWord(process.env["PODWRIGHT_CALLED_AS"] || "podwright");
}

/** Commands that act on a state directory. */
const ofState =
  "attach blame debug doctor evict exec gc logs plan port-forward ps retry run stop timeline ui volumes why".split(" ");
const others = "completion disable enable engine explain join kubelet leave replay version".split(" ");
const command = String.raw`podwright (${[...ofState, ...others].join("|")})(?![\w-])( --state-dir)?`;
const anywhere = new RegExp(String.raw`(?<![\w./-])${command}`, "gu");
const quoted = new RegExp(`(?<=')${command}`, "gu");

/**
 * A remedy with its commands as they are typed. Other rooms, and an engine, do not know how this program was called, and
 * for which state directory.
 * @param stateDirectory undefined: unknown, or the remedy has it where needed
 */
export function remedyAsTyped(remedy: string, stateDirectory?: string): string {
  return asTyped(remedy, anywhere, stateDirectory);
}

/** The same for a message, in which only what is in quotes is a command. */
export function messageAsTyped(message: string): string {
  return asTyped(message, quoted, undefined);
}

function asTyped(text: string, written: RegExp, stateDirectory: string | undefined): string {
  return text.replaceAll(written, (_whole, verb: string, given: string | undefined) => {
    const state =
      stateDirectory === undefined || given !== undefined || !ofState.includes(verb) ? [] : stateOption(stateDirectory);
    return [ownProgram(), verb, ...state].join(" ") + (given ?? "");
  });
}

/**
 * A command as it is typed to reach the engine of this state directory, e.g. `podwright stop --state-dir /srv/pods web`.
 * @param command the command and its operands, e.g. `["stop", "web"]`
 */
export function ownCommand(stateDirectory: string, ...[verb, ...operands]: readonly [string, ...string[]]): string {
  return [ownProgram(), verb, ...stateOption(stateDirectory), ...operands].join(" ");
}
