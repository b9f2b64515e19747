import type { PodRef } from "../journal/entry.ts";
import { podLabel } from "../server/pod-selector.ts";
import { ownCommand } from "./own-command.ts";

/** Three suggested commands for running pods of the state directory, one per line. */
export function nextSteps([first]: readonly PodRef[], stateDirectory: string): string[] {
  const pod = first === undefined ? "POD" : podLabel(first);
  const steps: readonly (readonly [string, string])[] = [
    [ownCommand(stateDirectory, "timeline", pod), "its history, with causes"],
    [ownCommand(stateDirectory, "logs", "-f", pod), "its output"],
    [ownCommand(stateDirectory, "ui"), "everything in a browser"],
  ];
  const width = Math.max(...steps.map(([command]) => command.length));
  return steps.map(([command, what]) => `  ${command.padEnd(width)}   ${what}`);
}
