import { posix } from "node:path";
import { importsOf, isTest, lineAt, type SourceFile, type Violation } from "./source-file.ts";

/** Node.js's modules that only compute. */
const pureModules = [
  "assert",
  "assert/strict",
  "buffer",
  "events",
  "path",
  "path/posix",
  "string_decoder",
  "url",
  "util",
].map((name) => `node:${name}`);

/** Libraries that only compute. */
const purePackages = ["@bufbuild/protobuf", "yaml", "zod"];

/** What reaches the world outside, by the room that may import it. `node:*` stands for every module. */
const doors: Readonly<Record<string, readonly string[]>> = {
  linux: ["node:*", "pino"],
  kube: ["node:*"],
  agent: ["node:os"],
  grpc: ["node:http2", "node:net", "@connectrpc/connect", "@connectrpc/connect-node"],
  cli: ["node:module", "node:os", "node:process", "node:readline", "node:tty", "commander", "pino"],
};

/** The first part of a package's specifier: `@scope/name` or `name`. */
function packageOf(specifier: string): string {
  return specifier
    .split("/")
    .slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/");
}

/** The folder of `src/` in which a file is. */
export function roomOf(path: string): string {
  return path.split("/")[1] ?? "";
}

/** One door: only the rooms with the real ports import the world outside. */
export function oneDoor(file: SourceFile): Violation[] {
  if (isTest(file.path)) return [];
  const allowed = new Set([...pureModules, ...purePackages, ...(doors[roomOf(file.path)] ?? [])]);
  const isAllowed = (specifier: string): boolean =>
    specifier.startsWith("node:") ? allowed.has(specifier) || allowed.has("node:*") : allowed.has(packageOf(specifier));
  const violations: Violation[] = importsOf(file)
    .filter(({ specifier, typeOnly }) => !typeOnly && !specifier.startsWith(".") && !isAllowed(specifier))
    .map(({ specifier, line }) => ({
      path: file.path,
      line,
      rule: `one door: imports ${specifier}`,
      remedy: "take a port (src/ports/) instead; its real form lives in src/linux, src/grpc or src/kube",
    }));
  // The linter knows the other globals by their scope, but neither what reads the clock only without arguments, nor a global
  // under another name.
  if (doors[roomOf(file.path)]?.includes("node:*") !== true) {
    for (const { rule, pattern, remedy } of hiddenDoors) {
      for (const match of file.text.matchAll(pattern)) {
        violations.push({ path: file.path, line: lineAt(file.text, match.index), rule, remedy });
      }
    }
  }
  return violations;
}

const takeClock = "take a Clock (src/ports/clock.ts): now() for people, monotonic() for durations and order";
const hiddenDoors = [
  {
    rule: "one door: reads the wall clock",
    pattern:
      /^(?!\s*(?:\*|\/\/)).*(?:\bnew Date\b(?!\s*\(\s*[^\s)])|(?<![\w.] ?)\bDate\(|\.format(?:ToParts)?\(\s*\))/gm,
    remedy: takeClock,
  },
  {
    rule: "one door: hands the clock on",
    pattern: /^(?!\s*(?:\*|\/\/)).*(?<!\bnew )\bDate\b(?!\s*\(|\.(?:UTC|parse)\b)/gm,
    remedy: takeClock,
  },
  {
    rule: "one door: hands chance on",
    pattern: /^(?!\s*(?:\*|\/\/)).*\bMath\b(?!\.)/gm,
    remedy: "take Random (src/ports/random.ts)",
  },
];

/** What everybody may import. */
const ground = ["base", "ports", "api", "journal"];
/** The real ports, with all that each may import besides itself. */
const realPorts: Readonly<Record<string, readonly string[]>> = {
  http2: ground,
  linux: [...ground, "http2"],
  grpc: [...ground, "http2"],
  cri: [...ground, "grpc"],
  kube: [...ground, "yaml", "http2"],
};
/** Who builds the working parts of other rooms. */
const builders = new Set(["cli", "agent", "sim", "engine", "kubelet"]);
/** All other rooms, from the top down. A room imports those below it, be it types: what two need lies below both. */
const storeys = [
  ...["cli", "agent", "sim", "engine", "kubelet"],
  ...["csi", "node-api", "page", "status", "claims", "volumes", "objects", "private-runtime", "replay"],
  ...[
    "stats",
    "certificates",
    "events",
    "config",
    "node",
    "firewall",
    "pods-api",
    "oom",
    "cloud",
    "plugins",
    "metrics",
  ],
  ...[
    "shutdown",
    "node-setup",
    "eviction",
    "pods",
    "sources",
    "pleg",
    "prober",
    "runtime",
    "logs",
    "images",
    "runtime-service",
  ],
  ...["server", "api-client", "yaml", "resources", "journal", "api", "base", "ports"],
];

function mayImport(from: string, to: string): boolean {
  if (from === to) return true;
  if (from in realPorts) return realPorts[from]?.includes(to) === true;
  if (to === "sim") return false;
  if (to in realPorts) return from === "cli" || from === "agent";
  const [own, other] = [storeys.indexOf(from), storeys.indexOf(to)];
  return own >= 0 && own < other;
}

function remedyOf(from: string, to: string): string {
  const missing = [from, to].find((room) => !(room in realPorts) && room !== "sim" && !storeys.includes(room));
  if (missing !== undefined) return `${missing} has no place in storeys (test/style/rules.ts), above its imports`;
  return `storeys (test/style/rules.ts) has ${from} below ${to}; take an interface, or move what both need down`;
}

/** The classes that a file exports, its errors aside: anybody may throw or recognise those. */
export function exportedClasses(file: SourceFile): string[] {
  const classes = [...file.text.matchAll(/^export (?:abstract )?class (\w+)/gm)].map((match) => match[1] ?? "");
  return classes.filter((name) => !name.endsWith("Error"));
}

/**
 * Imports one way: cli → agent → engine → kubelet → rooms → journal, api, base, ports, and down the storeys among the
 * rooms. From another room a room imports types and pure functions; working parts (classes) are passed to it.
 * @param project every source file by its path, to resolve imported names
 */
export function oneWay(file: SourceFile, project: ReadonlyMap<string, SourceFile>): Violation[] {
  if (isTest(file.path)) return [];
  const from = roomOf(file.path);
  const violations: Violation[] = [];
  for (const { specifier, values, line } of importsOf(file)) {
    const target = posix.join(posix.dirname(file.path), specifier);
    // package.json holds the version.
    if (!specifier.startsWith(".") || target === "package.json") continue;
    const to = roomOf(target);
    const violation = (rule: string, remedy: string): void =>
      void violations.push({ path: file.path, line, rule, remedy });
    if (target.endsWith(".test.ts") || !target.startsWith("src/")) {
      violation(`one way: imports ${target}`, "move what both need into src/");
    } else if (!mayImport(from, to)) {
      violation(`one way: ${from} imports ${to}`, remedyOf(from, to));
    } else if (from !== to && !builders.has(from) && !(from in realPorts) && !ground.includes(to)) {
      const classes = new Set(exportedClasses(project.get(target) ?? { path: target, text: "" }));
      for (const name of values.filter((value) => classes.has(value))) {
        violation(`one way: ${from} builds ${to}'s ${name}`, `import type { ${name} }, and let src/kubelet/ give it`);
      }
    }
  }
  return violations;
}

/**
 * Wings of the big rooms, from the top down: what a wing runs, it imports from a lower one. What lies loose in the room
 * belongs to all of its wings, and runs nothing of theirs.
 */
const wings: Readonly<Record<string, readonly string[]>> = {
  runtime: ["operations", "actions", "status", "config", "layout"],
  linux: ["servers", "network", "streams", "http", "certificates", "cgroups", "files", "dbus", "processes"],
};

/** Within a big room imports go down its wings; types may be anybody's. */
export function wingsDown(file: SourceFile): Violation[] {
  const [, room = "", name = ""] = file.path.split("/");
  const order = wings[room];
  if (order === undefined || isTest(file.path)) return [];
  const storey = (path: string): number => {
    const wing = path.split("/")[2] ?? "";
    return wing.endsWith(".ts") ? order.length : order.indexOf(wing);
  };
  const own = storey(file.path);
  const lost = own < 0 ? [{ rule: `wings: ${room} has no wing ${name}`, line: 1 }] : [];
  const upwards = importsOf(file).flatMap(({ specifier, typeOnly, line }) => {
    const target = posix.join(posix.dirname(file.path), specifier);
    const isUp = !typeOnly && specifier.startsWith(".") && roomOf(target) === room && storey(target) < own;
    return isUp ? [{ rule: `wings: ${room}/${name} imports ${target}`, line }] : [];
  });
  const remedy = `imports go ${order.join(" → ")} → what lies loose; move what both need down`;
  return [...lost, ...upwards].map(({ rule, line }) => ({ path: file.path, line, rule, remedy }));
}

/** The API server for tests stands alone: shared code could not reveal the kubelet's errors. Only tests use it. */
export function apart(file: SourceFile): Violation[] {
  const room = "test/apiserver/";
  const isInside = file.path.startsWith(room);
  return importsOf(file).flatMap(({ specifier, line }) => {
    if (specifier.startsWith("node:")) return [];
    const target = specifier.startsWith(".") ? posix.join(posix.dirname(file.path), specifier) : specifier;
    const isTarget = target.startsWith(room);
    const violation = (rule: string, remedy: string): Violation[] => [{ path: file.path, line, rule, remedy }];
    if (isInside && !isTarget) return violation(`apart: the API server for tests imports ${target}`, "write it there");
    const mayUse =
      isInside || file.path.startsWith("test/") || file.path.startsWith("bench/") || file.path.endsWith(".test.ts");
    return isTarget && !mayUse ? violation(`apart: imports ${target}`, "only tests and benches use it") : [];
  });
}

const markup = /\b(?:innerHTML|outerHTML|insertAdjacentHTML|setHTMLUnsafe|srcdoc|DOMParser|eval)\b|document\.write/g;

/** In the page text stays text: what it shows comes from pods. Of `src/` it takes nothing but types. */
export function noMarkup(file: SourceFile): Violation[] {
  if (!file.path.startsWith("web/") || file.path.endsWith(".test.ts")) return [];
  const remedy = "build elements with h() of web/dom.ts";
  const found = [...file.text.matchAll(markup)].map((match) => {
    return { path: file.path, line: lineAt(file.text, match.index), rule: `no markup from text: ${match[0]}`, remedy };
  });
  const values = importsOf(file).filter(({ specifier, typeOnly }) => !typeOnly && !specifier.startsWith("./"));
  const foreign = values.map(({ specifier, line }) => {
    return {
      path: file.path,
      line,
      rule: `the page imports ${specifier}`,
      remedy: "import types, or a module of web/",
    };
  });
  return [...found, ...foreign];
}

const forbiddenWords: readonly { readonly pattern: RegExp; readonly rule: string; readonly remedy: string }[] = [
  {
    pattern: /\b(?:TODO|FIXME|XXX|HACK)\b/g,
    rule: "no TODO",
    remedy: "finish it, or say in a sentence what is not done and why",
  },
  {
    pattern: /\b(?:test|it|describe|suite|t|context)\.(?:only|todo)\(|\bonly: true\b/g,
    rule: "no .only, no .todo",
    remedy: "run one file with `node --test FILE`; write the test",
  },
  {
    pattern: /\b(?:test|it|describe|suite)\.skip\(|\b(?:t|context)\.skip\(\s*\)|\bskip: true\b/g,
    rule: "no skip without a reason",
    remedy: 'give the reason that is printed: { skip: "why" } or t.skip("why")',
  },
  {
    pattern: /@ts-(?:ignore|nocheck)|@ts-expect-error\s*$/gm,
    rule: "no silenced types",
    remedy: "mend the type, or use `@ts-expect-error why`",
  },
  {
    pattern: /(?:oxlint|eslint)-disable(?!.* -- \S)/g,
    rule: "no silenced lint without a reason",
    remedy: "mend it, or end the comment with ` -- why`",
  },
];

/** Words that show unfinished or silenced work, in sources and tests alike. */
export function unfinished(file: SourceFile): Violation[] {
  return forbiddenWords.flatMap(({ pattern, rule, remedy }) =>
    [...file.text.matchAll(pattern)].map((match) => ({
      path: file.path,
      line: lineAt(file.text, match.index),
      rule,
      remedy,
    })),
  );
}
