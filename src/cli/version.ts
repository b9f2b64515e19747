import { ExitCode } from "../base/errors.ts";
import { commit, version } from "../base/version.ts";
import type { Terminal } from "./terminal.ts";

/** `podwright version`. */
export function versionCommand(terminal: Terminal, options: { readonly json?: true }): ExitCode {
  const node = process.versions.node;
  if (options.json === true) terminal.print(JSON.stringify({ version, ...(commit !== undefined && { commit }), node }));
  else terminal.print(`podwright ${version} (${commit === undefined ? "" : `commit ${commit}, `}Node.js ${node})`);
  return ExitCode.done;
}
