import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A directory for one test, removed when disposed of. */
export interface TestDirectory extends Disposable {
  readonly path: string;
  /** Joins names to its path. */
  join(...names: string[]): string;
}

/** Creates an empty temporary directory. */
export function testDirectory(parent = tmpdir()): TestDirectory {
  const path = mkdtempSync(join(parent, "podwright-test-"));
  return {
    path,
    join: (...names) => join(path, ...names),
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }),
  };
}

/** The `skip` value of a test that needs root: the reason, or false. */
export function needsRoot(): string | false {
  return process.getuid?.() === 0 ? false : "needs root";
}
