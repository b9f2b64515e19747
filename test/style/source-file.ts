/** A source text with the path from the project's root, `/` between its parts. */
export interface SourceFile {
  readonly path: string;
  readonly text: string;
}

/** Something that a rule of the house forbids, and what to do instead. */
export interface Violation {
  readonly path: string;
  readonly line: number;
  readonly rule: string;
  readonly remedy: string;
}

export interface Import {
  /** As written: a package, or a path that begins with a dot. */
  readonly specifier: string;
  /** Nothing of it is there at run time. */
  readonly typeOnly: boolean;
  /** Names of the values that it takes by name. */
  readonly values: readonly string[];
  readonly line: number;
}

export function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split("\n").length;
}

export function isTest(path: string): boolean {
  return path.endsWith(".test.ts") || !path.startsWith("src/");
}

// Statements begin their line (the formatter sees to it), so that text which only looks like an import is no match.
const statement = /^(?:import|export)\s+(type\s+)?([^"';]*?)\s*from\s+"([^"]+)"/gm;
const sideEffect = /^import\s+"([^"]+)"/gm;
const dynamic = /\bimport\(\s*"([^"]+)"\s*\)/g;

/** Every import and re-export of a file; an `import("…")` counts as a value wherever it stands. */
export function importsOf({ text }: SourceFile): Import[] {
  const imports: Import[] = [];
  for (const match of text.matchAll(statement)) {
    const [, type, clause = "", specifier = ""] = match;
    const named = /\{([^}]*)\}/.exec(clause)?.[1]?.split(",") ?? [];
    const names = named.map((name) => name.trim()).filter((name) => name !== "");
    const values = names.filter((name) => !name.startsWith("type ")).map((name) => name.split(/\s+as\s+/)[0] ?? name);
    const onlyTypesNamed = names.length > 0 && values.length === 0 && clause.trim().startsWith("{");
    const typeOnly = type !== undefined || onlyTypesNamed;
    imports.push({ specifier, typeOnly, values: typeOnly ? [] : values, line: lineAt(text, match.index) });
  }
  for (const pattern of [sideEffect, dynamic]) {
    for (const match of text.matchAll(pattern)) {
      imports.push({ specifier: match[1] ?? "", typeOnly: false, values: [], line: lineAt(text, match.index) });
    }
  }
  return imports;
}
