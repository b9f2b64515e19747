import { dirname, join, resolve } from "node:path/posix";

/** Absolute paths of this installation's launcher and examples. */
export function ownFiles(): { readonly launcher: string; readonly examples: string } {
  const [, script = ""] = process.argv;
  const root = script.endsWith("/src/cli/main.ts") ? resolve(script, "../../..") : dirname(dirname(script));
  return { launcher: join(root, "bin/podwright"), examples: join(root, "examples") };
}
