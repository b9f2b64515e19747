import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A directory for one test, removed when disposed of. */
export interface TestDirectory extends Disposable {
  readonly path: string;
  /** The path of something in it. */
  join(...names: string[]): string;
}

/** Makes an empty directory under the system's temporary one. */
export function testDirectory(): TestDirectory {
  const path = mkdtempSync(join(tmpdir(), "podwright-test-"));
  return {
    path,
    join: (...names) => join(path, ...names),
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }),
  };
}

/** The reason why a test that needs root must be skipped, or false: the value of node:test's `skip`. */
export function needsRoot(): string | false {
  return process.getuid?.() === 0 ? false : "needs root";
}
