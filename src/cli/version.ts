import { ExitCode } from "../base/errors.ts";
import { version } from "../base/version.ts";
import type { Terminal } from "./terminal.ts";

/** `podwright version`. */
export function versionCommand(terminal: Terminal, options: { readonly json?: true }): ExitCode {
  const node = process.versions.node;
  terminal.print(options.json === true ? JSON.stringify({ version, node }) : `podwright ${version} (Node.js ${node})`);
  return ExitCode.done;
}
