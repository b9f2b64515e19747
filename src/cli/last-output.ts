import { readLog } from "../logs/reader.ts";
import { FileError } from "../ports/files.ts";
import type { PodView } from "../server/local-api.ts";
import type { MachineContext } from "./machine-context.ts";
import { podLabel } from "../server/pod-selector.ts";
import { terminalText } from "./safe-text.ts";

const LINES = 10;

/** Prints the last lines of each ended container, before its log is removed with the pod. */
export async function printLastOutput(
  { terminal, files, compression }: Pick<MachineContext, "terminal" | "files" | "compression">,
  pods: readonly PodView[],
): Promise<void> {
  for (const pod of pods) {
    const failed = pod.initContainers.filter(({ exitCode = 0 }) => exitCode !== 0);
    for (const container of [...failed, ...pod.containers]) {
      if (container.exitCode === undefined || container.logPath === "") continue;
      const lines: string[] = [];
      try {
        for await (const line of readLog({ files, compression }, container.logPath, { tailLines: LINES })) {
          lines.push(`  ${terminal.paint.faint("│")} ${terminalText(new TextDecoder().decode(line.text))}`);
        }
      } catch (error) {
        // A container that could not be started has no log.
        if (!(error instanceof FileError)) throw error;
      }
      if (lines.length === 0) continue;
      terminal.print(`last lines of ${podLabel(pod)}, container ${container.name}:\n${lines.join("\n")}`);
    }
  }
}
