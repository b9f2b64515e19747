import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

/** A containerd for tests. */
export interface TestRuntime {
  /** Its origin: `sid`, `trixie` (scripts/fetch-runtimes.sh fetches them), `system`, or `given`. */
  readonly name: string;
  /** `2.1.9`, as the binary reports. */
  readonly version: string;
  /** The directory to search first for containerd, its shim and ctr. */
  readonly binDirectory: string;
}

const root = resolve(import.meta.dirname, "../..");

/** Every usable containerd of this machine, oldest version first. */
export function foundRuntimes(): TestRuntime[] {
  const places = [
    { name: "system", binDirectory: "/usr/bin" },
    ...["trixie", "sid"].map((name) => ({ name, binDirectory: join(root, ".cache/runtimes", name, "usr/bin") })),
  ];
  return places
    .flatMap(({ name, binDirectory }) => runtimeAt(name, join(binDirectory, "containerd")) ?? [])
    .toSorted((a, b) => compareVersions(a.version, b.version));
}

/** The containerd under test: PODWRIGHT_TEST_CONTAINERD (the path of its binary), otherwise the newest available. */
export function runtimeUnderTest(): TestRuntime {
  const given = process.env["PODWRIGHT_TEST_CONTAINERD"];
  const runtime = given === undefined ? foundRuntimes().at(-1) : runtimeAt("given", resolve(given));
  if (runtime === undefined) throw new Error(`no containerd runs at ${given ?? "/usr/bin/containerd"}`);
  return runtime;
}

function runtimeAt(name: string, binary: string): TestRuntime | undefined {
  if (!existsSync(binary)) return undefined;
  try {
    const text = execFileSync(binary, ["--version"], { encoding: "utf8" });
    const version = /\bv?(\d+\.\d+\.\d+)/.exec(text)?.[1] ?? "0.0.0";
    return { name, version, binDirectory: dirname(binary) };
  } catch {
    // Built for a newer libc than this machine's.
    return undefined;
  }
}

function compareVersions(a: string, b: string): number {
  return a.localeCompare(b, "en", { numeric: true });
}
