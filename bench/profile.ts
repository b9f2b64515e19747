/**
 * Reads the profiles that a bench has written into a directory (`--cpu-profile DIR`, `--allocation-profile DIR`) and
 * prints what each room of the sources used: CPU time and allocated bytes, per pod.
 *
 * profile.ts DIR --pods N
 */
import { existsSync, globSync, readFileSync } from "node:fs";
import type { HeapProfiler, Profiler, Runtime } from "node:inspector";
import { SourceMap } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { count } from "./support/options.ts";
import { type ByRoom, bytesByRoom, cpuByRoom, type SourceOf } from "./support/profile-rooms.ts";
import { printReport } from "./support/report.ts";

/** Rooms below this share of both are summed up. */
const smallest = 0.01;

function parsed<T>(directory: string, pattern: string, read: (profile: T) => ByRoom): ByRoom {
  const [file] = globSync(pattern, { cwd: directory });
  return file === undefined ? new Map() : read(JSON.parse(readFileSync(join(directory, file), "utf8")) as T);
}

/** By the source maps beside the bundle. */
function sourcesOfBundle(): SourceOf {
  const maps = new Map<string, SourceMap | undefined>();
  const mapOf = (url: string): SourceMap | undefined => {
    const known = maps.get(url);
    if (known !== undefined || maps.has(url)) return known;
    const path = `${fileURLToPath(url)}.map`;
    const text = existsSync(path) ? readFileSync(path, "utf8") : undefined;
    const map = text === undefined ? undefined : new SourceMap(JSON.parse(text));
    maps.set(url, map);
    return map;
  };
  return ({ url, lineNumber, columnNumber }: Runtime.CallFrame) => {
    if (!url.startsWith("file:")) return undefined;
    const entry = mapOf(url)?.findEntry(lineNumber, columnNumber);
    return entry !== undefined && "originalSource" in entry ? entry.originalSource : url;
  };
}

function total(rooms: ByRoom): number {
  return rooms.values().reduce((sum, value) => sum + value, 0);
}

function main(): void {
  const { values, positionals } = parseArgs({
    options: { pods: { type: "string" }, json: { type: "boolean", default: false } },
    allowPositionals: true,
  });
  const [directory] = positionals;
  if (directory === undefined || values.pods === undefined) {
    throw new Error("usage: profile.ts DIR --pods N [--json]");
  }
  const pods = count(values.pods);
  const sourceOf = sourcesOfBundle();
  const cpu = parsed<Profiler.Profile>(directory, "*.cpuprofile", (profile) => cpuByRoom(profile, sourceOf));
  const bytes = parsed<HeapProfiler.SamplingHeapProfile>(directory, "*.heapprofile", (profile) =>
    bytesByRoom(profile, sourceOf),
  );
  if (cpu.size + bytes.size === 0) throw new Error(`${directory} has neither a .cpuprofile nor a .heapprofile`);
  const [allCpu, allBytes] = [total(cpu) || 1, total(bytes) || 1];
  const share = (room: string): number => Math.max((cpu.get(room) ?? 0) / allCpu, (bytes.get(room) ?? 0) / allBytes);
  const rooms = [...new Set([...cpu.keys(), ...bytes.keys()])].toSorted(
    (a, b) => (cpu.get(b) ?? 0) - (cpu.get(a) ?? 0),
  );
  const large = rooms.filter((room) => share(room) >= smallest);
  const sum = (of: ByRoom, names: readonly string[]): number => {
    return names.reduce((so, name) => so + (of.get(name) ?? 0), 0);
  };
  const row = (name: string, names: readonly string[]): [string, string, string] => {
    return [name, (sum(cpu, names) / pods).toFixed(2), (sum(bytes, names) / pods / 1024).toFixed(0)];
  };
  const small = rooms.filter((room) => share(room) < smallest);
  printReport(
    {
      bench: "profile",
      setting: [`${directory}: of one process, its start included, per each of ${pods} pods`],
      columns: ["room", "CPU ms", "KiB allocated"],
      rows: [row("all", rooms), ...large.map((room) => row(room, [room])), row(`${small.length} others`, small)],
      goals: [],
      measurements: { cpuMs: Object.fromEntries(cpu), bytes: Object.fromEntries(bytes) },
    },
    values.json,
  );
}

main();
