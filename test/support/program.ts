import { globSync, statSync } from "node:fs";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dirname, "../..");
const bundle = join(root, "dist/podwright.js");

function modified(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

/** Whether the bundle was built of the sources as they are. */
function isBuilt(): boolean {
  const built = modified(bundle);
  const isSource = (path: string): boolean => path.endsWith(".ts") && !path.endsWith(".test.ts");
  return globSync(["src/**", "web/**"], { cwd: root }).every(
    (path) => !isSource(path) || modified(join(root, path)) <= built,
  );
}

/**
 * The command line of podwright: the launcher, as users have it, when the bundle is of these sources; otherwise the
 * sources, which take twice as long to start.
 */
export const ownProgram: readonly string[] = isBuilt()
  ? [join(root, "bin/podwright")]
  : [process.execPath, join(root, "src/cli/main.ts")];

/** The environment of podwright: the bundle has compiled code of its own. */
export function ownEnvironment(): NodeJS.ProcessEnv {
  const { NODE_COMPILE_CACHE: cache, ...environment } = process.env;
  return ownProgram.length === 1 || cache === undefined ? environment : { ...environment, NODE_COMPILE_CACHE: cache };
}
