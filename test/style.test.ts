import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { globSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { before, describe, it } from "node:test";
import { promisify } from "node:util";
import { circles } from "./style/circles.ts";
import { apart, exportedClasses, noMarkup, oneDoor, oneWay, unfinished, wingsDown } from "./style/rules.ts";
import { importsOf, isTest, type SourceFile, type Violation } from "./style/source-file.ts";
import { logMessages, plainWords } from "./style/words.ts";

const root = dirname(import.meta.dirname);

async function readProject(): Promise<Map<string, SourceFile>> {
  const paths = globSync(["src/**/*.ts", "web/*.ts", "test/**/*.ts", "scripts/**/*.ts", "bench/**/*.ts"], {
    cwd: root,
  });
  const ours = paths.filter((path) => !path.startsWith("src/ports/gen/"));
  const files = await Promise.all(ours.map(async (path) => ({ path, text: await readFile(join(root, path), "utf8") })));
  return new Map(files.map((file) => [file.path, file]));
}

function assertNone(violations: readonly Violation[]): void {
  const lines = violations.map(({ path, line, rule, remedy }) => `${path}:${line}  ${rule}\n    → ${remedy}`);
  assert.ok(violations.length === 0, `${violations.length} against the rules:\n${lines.join("\n")}`);
}

function rulesOf(violations: readonly Violation[]): string[] {
  return violations.map(({ line, rule }) => `${line}: ${rule}`);
}

describe("the sources", async () => {
  const project = await readProject();
  const files = [...project.values()];
  // The rules' own samples are the one place that must hold what they forbid.
  const others = files.filter(({ path }) => !path.startsWith("test/style"));

  const plain = files.filter(({ path }) => path.startsWith("src/") && !isTest(path));

  it("are found", () => assert.ok(project.has("src/ports/clock.ts") && files.length > 20));
  it("reach the world outside through one door", () => assertNone(files.flatMap((file) => oneDoor(file))));
  it("import one way", () => assertNone(files.flatMap((file) => oneWay(file, project))));
  it("import down the wings of a big room", () => assertNone(files.flatMap((file) => wingsDown(file))));
  it("keep the API server for tests apart", () => assertNone(files.flatMap((file) => apart(file))));
  it("import in no circle", () => assertNone(circles(files)));
  it("hold nothing unfinished or silenced", () => assertNone(others.flatMap((file) => unfinished(file))));
  it("log constant messages, short and of one form", () => assertNone(files.flatMap((file) => logMessages(file))));
  it("say things in plain words, and so do the documents", async () => {
    const documents = globSync(["*.md", "docs/**/*.md"], { cwd: root });
    const texts = documents.map(async (path) => {
      // What stands in backquotes is quoted: titles of tests, output.
      const text = (await readFile(join(root, path), "utf8")).replaceAll(/`[^`\n]*`/g, "``");
      return { path, text };
    });
    assertNone([...plain, ...(await Promise.all(texts))].flatMap((file) => plainWords(file)));
  });
  it("make no markup of text in the page", () => assertNone([...project.values()].flatMap((file) => noMarkup(file))));
});

describe("the rule against circles", () => {
  const file = (path: string, ...imports: string[]): SourceFile => {
    return { path, text: imports.map((name) => `import type { X } from "./${name}.ts";`).join("\n") };
  };

  it("tells each circle once, through however many files", () => {
    const files = [file("src/a.ts", "b"), file("src/b.ts", "c", "d"), file("src/c.ts", "a"), file("src/d.ts", "d")];
    assert.deepEqual(rulesOf(circles(files)), [
      "1: no circles: src/a.ts → src/b.ts → src/c.ts → src/a.ts",
      "1: no circles: src/d.ts → src/d.ts",
    ]);
  });
  it("lets two ways to one file pass", () => {
    const files = [file("src/a.ts", "b", "c"), file("src/b.ts", "d"), file("src/c.ts", "d"), file("src/d.ts")];
    assert.deepEqual(circles(files), []);
  });
});

describe("the one-door rule", () => {
  const inRoom = (path: string, text: string): string[] => rulesOf(oneDoor({ path, text }));

  it("catches modules and libraries that reach outside", () => {
    const text = [
      'import { readFile } from "node:fs/promises";',
      'import pino from "pino";',
      'import "node:net";',
    ].join("\n");
    assert.deepEqual(inRoom("src/pleg/x.ts", text), [
      "1: one door: imports node:fs/promises",
      "2: one door: imports pino",
      "3: one door: imports node:net",
    ]);
  });
  it("catches a dynamic import and one over several lines", () => {
    const text = 'import {\n  a,\n  b,\n} from "node:http";\nconst x = await import("node:zlib");';
    assert.deepEqual(inRoom("src/sim/x.ts", text), [
      "1: one door: imports node:http",
      "5: one door: imports node:zlib",
    ]);
  });
  it("catches a clock read, not a conversion or a comment", () => {
    const text = "const a = new Date();\nconst b = new Date(5);\n// new Date()\nconst c = new Date;\nconst d = Date();";
    const rule = "one door: reads the wall clock";
    assert.deepEqual(inRoom("src/status/x.ts", text), [`1: ${rule}`, `4: ${rule}`, `5: ${rule}`]);
  });
  it("catches the clock and chance under other names", () => {
    const text = [
      "const D = Date;",
      "const m = [Math];",
      "Reflect.construct(Date, []);",
      'new Intl.DateTimeFormat("en").format();',
      "const { now } = Date;",
      "const day = Date.UTC(2026, 1) + Math.max(1, 2) + Date.parse(text);",
      'new Intl.DateTimeFormat("en").format(atMs);',
    ].join("\n");
    assert.deepEqual(inRoom("src/pods/x.ts", text).toSorted(), [
      "1: one door: hands the clock on",
      "2: one door: hands chance on",
      "3: one door: hands the clock on",
      "4: one door: reads the wall clock",
      "5: one door: hands the clock on",
    ]);
  });
  it("lets the real ports, tests, types and what only computes pass", () => {
    assert.deepEqual(inRoom("src/linux/x.ts", 'import { readFile } from "node:fs/promises";\nnew Date();'), []);
    assert.deepEqual(inRoom("src/grpc/x.ts", 'import { connect } from "node:http2";'), []);
    assert.deepEqual(inRoom("src/pleg/x.test.ts", 'import { readFile } from "node:fs/promises";'), []);
    assert.deepEqual(inRoom("src/pleg/x.ts", 'import type { Socket } from "node:net";'), []);
    assert.deepEqual(inRoom("src/pleg/x.ts", 'import { join } from "node:path";\nimport * as z from "zod";'), []);
  });
});

describe("the one-way rule", () => {
  const channel = {
    path: "src/pleg/pleg.ts",
    text: "export class Pleg {}\nexport class PlegError {}\nexport function f() {}",
  };
  const project = new Map([[channel.path, channel]]);
  const inRoom = (path: string, text: string): string[] => rulesOf(oneWay({ path, text }, project));

  it("catches an import upwards, of a shell, of a real port and of a test", () => {
    assert.deepEqual(inRoom("src/base/x.ts", 'import type { A } from "../pods/a.ts";'), [
      "1: one way: base imports pods",
    ]);
    assert.deepEqual(inRoom("src/pods/x.ts", 'import type { A } from "../status/a.ts";'), [
      "1: one way: pods imports status",
    ]);
    assert.deepEqual(inRoom("src/other/x.ts", 'import type { A } from "../api/a.ts";'), [
      "1: one way: other imports api",
    ]);
    const [unknown] = oneWay({ path: "src/other/x.ts", text: 'import type { A } from "../api/a.ts";' }, project);
    assert.match(unknown?.remedy ?? "", /^other has no place in storeys/u);
    assert.deepEqual(inRoom("src/pods/x.ts", 'import { A } from "../cli/a.ts";'), ["1: one way: pods imports cli"]);
    assert.deepEqual(inRoom("src/agent/x.ts", 'import { A } from "../cli/a.ts";'), ["1: one way: agent imports cli"]);
    assert.deepEqual(inRoom("src/engine/x.ts", 'import { A } from "../agent/a.ts";'), [
      "1: one way: engine imports agent",
    ]);
    assert.deepEqual(inRoom("src/pods/x.ts", 'import { A } from "../linux/a.ts";'), ["1: one way: pods imports linux"]);
    assert.deepEqual(inRoom("src/pods/x.ts", 'import { A } from "../kubelet/kubelet.ts";'), [
      "1: one way: pods imports kubelet",
    ]);
    assert.deepEqual(inRoom("src/kubelet/kubelet.ts", 'import { A } from "../linux/a.ts";'), [
      "1: one way: kubelet imports linux",
    ]);
    assert.deepEqual(inRoom("src/pods/x.ts", 'import { A } from "./y.test.ts";'), [
      "1: one way: imports src/pods/y.test.ts",
    ]);
  });
  it("catches a room that builds another's working part", () => {
    const text = 'import { f, Pleg as P, PlegError, type Other } from "../pleg/pleg.ts";';
    assert.deepEqual(inRoom("src/pods/x.ts", text), ["1: one way: pods builds pleg's Pleg"]);
  });
  it("lets types, functions and the way down pass", () => {
    assert.deepEqual(inRoom("src/pods/x.ts", 'import type { Pleg } from "../pleg/pleg.ts";'), []);
    assert.deepEqual(inRoom("src/pods/x.ts", 'import { type Pleg, f } from "../pleg/pleg.ts";'), []);
    assert.deepEqual(inRoom("src/kubelet/kubelet.ts", 'import { Pleg } from "../pleg/pleg.ts";'), []);
    assert.deepEqual(
      inRoom("src/cli/x.ts", 'import { A } from "../linux/a.ts";\nimport { B } from "../kubelet/kubelet.ts";'),
      [],
    );
    assert.deepEqual(inRoom("src/cli/x.ts", 'import { A } from "../agent/a.ts";'), []);
    assert.deepEqual(inRoom("src/agent/x.ts", 'import { A } from "../linux/a.ts";'), []);
    assert.deepEqual(inRoom("src/engine/x.ts", 'import { B } from "../kubelet/kubelet.ts";'), []);
    assert.deepEqual(inRoom("src/sim/x.ts", 'import { B } from "../kubelet/kubelet.ts";'), []);
  });
  it("knows classes from errors", () => assert.deepEqual(exportedClasses(channel), ["Pleg"]));
  it("reads what an import takes", () => {
    const text = 'import d, { type A, b as c } from "x";\nexport * from "y";\nexport type { T } from "z";';
    const seen = importsOf({ path: "src/a.ts", text }).map((entry) => [entry.specifier, entry.typeOnly, entry.values]);
    assert.deepEqual(seen, [
      ["x", false, ["b"]],
      ["y", false, []],
      ["z", true, []],
    ]);
  });
});

describe("the rule of the wings", () => {
  const imports = (path: string, text: string): string[] => rulesOf(wingsDown({ path, text }));

  it("lets what is run come from lower wings, and types from anywhere", () => {
    const text =
      'import { a } from "../status/a.ts";\nimport type { B } from "../operations/b.ts";\nimport { c } from "../c.ts";';
    assert.deepEqual(imports("src/runtime/actions/x.ts", text), []);
  });
  it("catches what is run of a higher wing, also by what lies loose", () => {
    const up = "wings: runtime/status imports src/runtime/actions/a.ts";
    assert.deepEqual(imports("src/runtime/status/x.ts", 'import { a } from "../actions/a.ts";'), [`1: ${up}`]);
    const loose = "wings: runtime/x.ts imports src/runtime/layout/a.ts";
    assert.deepEqual(imports("src/runtime/x.ts", 'import { a } from "./layout/a.ts";'), [`1: ${loose}`]);
  });
  it("catches a wing of no name", () => {
    assert.deepEqual(imports("src/linux/other/x.ts", ""), ["1: wings: linux has no wing other"]);
    assert.deepEqual(imports("src/pods/other/x.ts", ""), []);
  });
});

describe("the rule that keeps the API server for tests apart", () => {
  const using = (path: string, specifier: string): string[] =>
    rulesOf(apart({ path, text: `import { A } from "${specifier}";` }));

  it("catches production code and scripts that use it, and what it takes from outside", () => {
    const rule = "1: apart: imports test/apiserver/server.ts";
    assert.deepEqual(using("src/kube/x.ts", "../../test/apiserver/server.ts"), [rule]);
    assert.deepEqual(using("scripts/x.ts", "../test/apiserver/server.ts"), [rule]);
    const outside = "1: apart: the API server for tests imports";
    assert.deepEqual(using("test/apiserver/x.ts", "../../src/api/pod.ts"), [`${outside} src/api/pod.ts`]);
    assert.deepEqual(using("test/apiserver/x.ts", "zod"), [`${outside} zod`]);
  });
  it("lets tests, benches and its own files pass", () => {
    assert.deepEqual(using("src/kube/x.test.ts", "../../test/apiserver/server.ts"), []);
    assert.deepEqual(using("test/support/x.ts", "../apiserver/server.ts"), []);
    assert.deepEqual(using("bench/x.ts", "../test/apiserver/server.ts"), []);
    assert.deepEqual(using("test/apiserver/x.ts", "./server.ts"), []);
    assert.deepEqual(using("test/apiserver/x.ts", "node:http2"), []);
  });
});

describe("the rule against markup in the page", () => {
  it("catches every way from text to markup or code, in the page alone", () => {
    const text =
      "a.innerHTML = x;\nb.insertAdjacentHTML('beforeend', x);\ndocument.write(x);\nc.outerHTML = x;\neval(x);";
    assert.deepEqual(
      rulesOf(noMarkup({ path: "web/a.ts", text })).map((each) => each.slice(0, 1)),
      ["1", "2", "3", "4", "5"],
    );
    assert.deepEqual(noMarkup({ path: "src/a.ts", text }), []);
  });
});

describe("the rule against unfinished work", () => {
  const samples: readonly (readonly [text: string, rule: string])[] = [
    ["// TODO: later", "no TODO"],
    ['test.only("a", f);', "no .only, no .todo"],
    ['it.todo("a");', "no .only, no .todo"],
    ['test.skip("a", f);', "no skip without a reason"],
    ["t.skip();", "no skip without a reason"],
    ['test("a", { skip: true }, f);', "no skip without a reason"],
    ["// @ts-ignore because", "no silenced types"],
    ["// @ts-expect-error", "no silenced types"],
    ["// oxlint-disable-next-line no-console", "no silenced lint without a reason"],
  ];
  for (const [text, rule] of samples) {
    it(`catches ${text}`, () => assert.deepEqual(rulesOf(unfinished({ path: "src/a.ts", text })), [`1: ${rule}`]));
  }
  it("lets a reason pass", () => {
    const text =
      't.skip("no root");\ntest("a", { skip: reason }, f);\n// oxlint-disable-next-line x -- why\n// @ts-expect-error why';
    assert.deepEqual(rulesOf(unfinished({ path: "src/a.ts", text })), []);
  });
});

/** The rules that need a syntax tree or types are the linter's; these samples hold its configuration to them. */
describe("the linter", () => {
  const long = `export function long(): void {\n${"  f();\n".repeat(80)}}\nfunction f(): void {}\n`;
  const outside = "setTimeout(() => {}, 1);\nconsole.log(process.argv, Math.random(), Date.now());\n";
  const samples: Readonly<Record<string, string>> = {
    "src/pods/globals.ts": outside,
    "src/sim/globals.ts": "void fetch(String(performance.now()));\nvoid AbortSignal.timeout(1);\n",
    "src/pods/global.ts": "global.setTimeout(() => {}, 1);\nexport const wait = Atomics.waitAsync;\n",
    "src/pods/own-name.ts": "export const f = (process: { readonly pid: number }): number => process.pid;\n",
    "src/pods/any.ts": "const a: any = 1;\nexport default a;\n",
    "src/pods/long.ts": long + "// a line\n".repeat(400),
    "src/pods/long.test.ts": long,
    "src/pods/promise.ts": "async function f(): Promise<void> {}\nexport function g(): void {\n  f();\n}\n",
    "src/cli/shell.ts": outside,
    "src/agent/shell.ts": outside,
    "src/linux/port.ts": outside,
  };
  const found = new Map<string, string[]>();
  const lint = async (folder: string): Promise<string> => {
    const program = join(root, "node_modules/oxlint/bin/oxlint");
    try {
      const environment = { ...process.env, PATH: `${join(root, "node_modules/.bin")}:${process.env["PATH"] ?? ""}` };
      const options = { cwd: folder, env: environment };
      return (await promisify(execFile)(process.execPath, [program, "--format=json"], options)).stdout;
    } catch (error) {
      // It exits with 1 when it finds something, as it must here.
      if (error instanceof Error && "stdout" in error && typeof error.stdout === "string") return error.stdout;
      throw error;
    }
  };

  before(async () => {
    const folder = await mkdtemp(join(tmpdir(), "podwright-lint-"));
    try {
      await copyFile(join(root, ".oxlintrc.json"), join(folder, ".oxlintrc.json"));
      await writeFile(join(folder, "tsconfig.json"), '{ "compilerOptions": { "strict": true, "types": [] } }');
      for (const [path, text] of Object.entries(samples)) {
        await mkdir(join(folder, dirname(path)), { recursive: true });
        await writeFile(join(folder, path), text);
      }
      const report = JSON.parse(await lint(folder)) as { diagnostics: { code: string; filename: string }[] };
      for (const { filename, code } of report.diagnostics) found.set(filename, [...(found.get(filename) ?? []), code]);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
  const count = (path: string, code: string): number => (found.get(path) ?? []).filter((each) => each === code).length;

  it("forbids clocks, timers, randomness, the process and the terminal in rooms and the simulator", () => {
    assert.equal(count("src/pods/globals.ts", "eslint(no-restricted-globals)"), 3);
    assert.equal(count("src/pods/globals.ts", "eslint(no-restricted-properties)"), 2);
    assert.equal(count("src/sim/globals.ts", "eslint(no-restricted-globals)"), 2);
    assert.equal(count("src/sim/globals.ts", "eslint(no-restricted-properties)"), 1);
    assert.equal(count("src/pods/global.ts", "eslint(no-restricted-globals)"), 2);
  });
  it("forbids the command line and the agent all but the process and the terminal", () => {
    for (const path of ["src/cli/shell.ts", "src/agent/shell.ts"]) {
      assert.equal(count(path, "eslint(no-restricted-globals)"), 1);
      assert.equal(count(path, "eslint(no-restricted-properties)"), 2);
    }
  });
  it("lets the real ports, and names of a file's own, pass", () => {
    for (const path of ["src/linux/port.ts", "src/pods/own-name.ts"]) {
      assert.equal(count(path, "eslint(no-restricted-globals)"), 0);
      assert.equal(count(path, "eslint(no-restricted-properties)"), 0);
    }
  });
  it("forbids any and default exports", () => {
    assert.equal(count("src/pods/any.ts", "typescript(no-explicit-any)"), 1);
    assert.equal(count("src/pods/any.ts", "import(no-default-export)"), 1);
  });
  it("limits files and functions, but not the functions of tests", () => {
    assert.equal(count("src/pods/long.ts", "eslint(max-lines)"), 1);
    assert.equal(count("src/pods/long.ts", "eslint(max-lines-per-function)"), 1);
    assert.equal(count("src/pods/long.test.ts", "eslint(max-lines-per-function)"), 0);
  });
  it("knows types: a promise that nobody awaits", () => {
    assert.equal(count("src/pods/promise.ts", "typescript(no-floating-promises)"), 1);
  });
});

describe("the compiler", () => {
  it("refuses syntax that Node.js cannot strip, and loose types", async () => {
    const { compilerOptions } = JSON.parse(await readFile(join(root, "tsconfig.json"), "utf8")) as {
      compilerOptions: Readonly<Record<string, unknown>>;
    };
    for (const option of ["strict", "erasableSyntaxOnly", "noUncheckedIndexedAccess", "exactOptionalPropertyTypes"]) {
      assert.equal(compilerOptions[option], true, option);
    }
  });
});
