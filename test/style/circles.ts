import { posix } from "node:path";
import { importsOf, type SourceFile, type Violation } from "./source-file.ts";

/**
 * Files that import each other, types included: a reader of one needs all of them. Each circle is reported once, at its
 * first import.
 */
export function circles(files: readonly SourceFile[]): Violation[] {
  const known = new Set(files.map(({ path }) => path));
  const imports = new Map(
    files.map((file) => {
      const targets = importsOf(file)
        .map(({ specifier, line }) => ({ path: posix.join(posix.dirname(file.path), specifier), line }))
        .filter(({ path }) => known.has(path));
      return [file.path, targets] as const;
    }),
  );
  const violations: Violation[] = [];
  const done = new Set<string>();
  const way: string[] = [];
  const visit = (path: string): void => {
    way.push(path);
    for (const { path: next, line } of imports.get(path) ?? []) {
      const begin = way.indexOf(next);
      if (begin >= 0) {
        const rule = `no circles: ${[...way.slice(begin), next].join(" → ")}`;
        violations.push({ path, line, rule, remedy: "move what both need into a file of its own" });
      } else if (!done.has(next)) {
        visit(next);
      }
    }
    way.pop();
    done.add(path);
  };
  for (const { path } of files) if (!done.has(path)) visit(path);
  return violations;
}
