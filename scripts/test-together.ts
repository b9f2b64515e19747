/**
 * Runs the tests of several files in one process, each file as a suite with its name, so that common imports are loaded
 * once.
 */
import { resolve } from "node:path";
import { describe } from "node:test";
import { pathToFileURL } from "node:url";

for (const file of process.argv.slice(2)) {
  void describe(file, async () => {
    await import(pathToFileURL(resolve(file)).href);
  });
}
