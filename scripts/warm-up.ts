/**
 * Runs commands that load most of the bundle, one after another in one process: Node.js stores a module's compiled code
 * when the first process that loaded it ends, and nothing that later ones compile. The commands change nothing on the
 * machine.
 *
 * warm-up.js MANIFEST
 */
import { runCommandLine } from "../src/cli/command-line.ts";
import { type OutputStream, Terminal } from "../src/cli/terminal.ts";

const nowhere = ["--state-dir", "/nonexistent/podwright"];
const commands = [
  ["kubelet", "--help"],
  ["why", "pod", ...nowhere],
  ["ps", ...nowhere],
  ["logs", "pod", ...nowhere],
  ["plan", process.argv[2] ?? "", ...nowhere],
];

const silent: OutputStream = { write: () => true };
for (const words of commands) {
  using terminal = new Terminal(silent, silent, {});
  // Their errors about the missing directory do not matter.
  await runCommandLine(terminal, words, false);
}
