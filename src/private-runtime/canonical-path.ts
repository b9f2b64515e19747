import { ExitCode, PodwrightError } from "../base/errors.ts";
import { FileError, type Files } from "../ports/files.ts";

/** The path without symbolic links; of what does not exist yet, its nearest existing parent's. */
export async function canonicalPath(files: Files, path: string): Promise<string> {
  let existing = path;
  let rest = "";
  for (;;) {
    try {
      const real = await files.realPath(existing);
      return real === "/" ? rest || "/" : real + rest;
    } catch (error) {
      if (!(error instanceof FileError) || error.code !== "ENOENT" || existing === "/") {
        throw new PodwrightError(ExitCode.badInput, `cannot use the state directory ${path}: ${String(error)}`, {
          remedy: "use another --state-dir",
        });
      }
      const slash = existing.lastIndexOf("/");
      rest = existing.slice(slash) + rest;
      existing = existing.slice(0, slash) || "/";
    }
  }
}
