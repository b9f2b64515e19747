import { basename } from "node:path/posix";
import { ExitCode } from "../base/errors.ts";
import { useHeaderFields } from "../grpc/header-fields.ts";
import { runCommandLine } from "./command-line.ts";
import { Terminal } from "./terminal.ts";

/** Under the name `kubelet`, e.g. of a link, it is `podwright kubelet`. */
function commandLine([, program = "", ...given]: readonly string[]): readonly string[] {
  return basename(program) === "kubelet" ? ["kubelet", ...given] : given;
}

async function main(): Promise<number> {
  using terminal = new Terminal(process.stdout, process.stderr, process.env);
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", (error: NodeJS.ErrnoException) => {
      terminal.close();
      // A closed pipe (`| head`) is not an error; a full disk is.
      if (error.code !== "EPIPE") process.exitCode = ExitCode.failed;
    });
  }
  return await runCommandLine(terminal, commandLine(process.argv), process.env["PODWRIGHT_DEBUG"] === "1");
}

useHeaderFields();
const exitCode = await main();
// A failed write may have set another exit code.
process.exitCode ||= exitCode;
// Nothing is left to do. Without this, Node.js 26 sometimes spins in the clean-up of its handles, and never ends.
process.once("beforeExit", () => process.exit());
