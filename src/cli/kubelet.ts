import { runKubelet } from "../agent/kubelet.ts";
import { platform } from "../agent/platform.ts";
import { ExitCode } from "../base/errors.ts";
import { kubeletHelp, parseKubeletFlags } from "../config/flags.ts";
import { versionText } from "../config/version-flag.ts";
import { nameProcess } from "../linux/processes/own-process.ts";
import type { Terminal } from "./terminal.ts";

/**
 * `podwright kubelet`: runs the node agent in the foreground until it is asked to stop, and returns the exit code.
 * @param arguments_ the words after `podwright kubelet`
 */
export async function kubeletCommand(terminal: Terminal, arguments_: readonly string[]): Promise<ExitCode> {
  const flags = parseKubeletFlags(arguments_);
  const version = versionText(flags.node.version, platform);
  if (flags.help) terminal.print(kubeletHelp());
  else if (version !== undefined) terminal.print(version);
  else {
    // Otherwise nobody who looks for the node's kubelet would find one: it would be one of many called node.
    await nameProcess("kubelet", arguments_);
    await runKubelet(flags);
  }
  return ExitCode.done;
}
