import type { Files } from "../ports/files.ts";

/**
 * Creates a kubelet's directories with the modes of upstream's `setupDataDirs`: accessible only for root and its group.
 * Existing ones keep their mode.
 */
export async function makeNodeDirectories(files: Files, rootDirectory: string, podLogsRoot: string): Promise<void> {
  const below = ["pods", "plugins", "plugins_registry", "pod-resources"].map((name) => `${rootDirectory}/${name}`);
  for (const path of [rootDirectory, podLogsRoot, ...below]) await files.makeDirectory(path, 0o750);
}
