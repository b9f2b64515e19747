import { execFileSync } from "node:child_process";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dirname, "../..");

/** Whether the bundle was built from the current sources. */
function isBuilt(): boolean {
  return execFileSync("sh", [join(root, "scripts/newer-than-bundle.sh")], { encoding: "utf8" }) === "";
}

/**
 * The command line of podwright: the launcher, as for users, if the bundle is current; otherwise the sources, which
 * take twice as long to start.
 */
export const ownProgram: readonly string[] = isBuilt()
  ? [join(root, "bin/podwright")]
  : [process.execPath, join(root, "src/cli/main.ts")];

/** The environment of podwright: the bundle has its own code cache. */
export function ownEnvironment(): NodeJS.ProcessEnv {
  const { NODE_COMPILE_CACHE: cache, ...environment } = process.env;
  return ownProgram.length === 1 || cache === undefined ? environment : { ...environment, NODE_COMPILE_CACHE: cache };
}
