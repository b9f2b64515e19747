import type { Files } from "../ports/files.ts";

/**
 * Makes what a kubelet has on disk from its start on, with the modes of upstream's `setupDataDirs`: nobody but root and
 * its group looks into it. What is there already keeps the mode that somebody gave it.
 */
export async function makeNodeDirectories(files: Files, rootDirectory: string, podLogsRoot: string): Promise<void> {
  const below = ["pods", "plugins", "plugins_registry", "pod-resources"].map((name) => `${rootDirectory}/${name}`);
  for (const path of [rootDirectory, podLogsRoot, ...below]) await files.makeDirectory(path, 0o750);
}
