import type { PodRef } from "../journal/entry.ts";
import { podLabel } from "../server/pod-selector.ts";

/** Three suggested commands for running pods, one per line. */
export function nextSteps([first]: readonly PodRef[]): string[] {
  const pod = first === undefined ? "POD" : podLabel(first);
  const steps: readonly (readonly [string, string])[] = [
    [`podwright timeline ${pod}`, "its history, with causes"],
    [`podwright logs -f ${pod}`, "its output"],
    ["podwright ui", "everything in a browser"],
  ];
  const width = Math.max(...steps.map(([command]) => command.length));
  return steps.map(([command, what]) => `  ${command.padEnd(width)}   ${what}`);
}
