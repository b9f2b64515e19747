import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { parseArgs, type ParseArgsConfig } from "node:util";

const root = dirname(dirname(import.meta.dirname));

/** Command line options of all benches. */
export interface BenchOptions {
  /** Absolute path of the containerd; its shim and ctr are beside it. */
  readonly containerd: string;
  /** The engine's program: a bundle, as users run it, or the sources. */
  readonly program: string;
  /** Output of the engine's CPU profile; undefined: none. */
  readonly cpuProfile: string | undefined;
  /** Output of an allocation profile, likewise. */
  readonly allocationProfile: string | undefined;
  readonly rounds: number;
  /** Numbers of pods, as given. */
  readonly pods: readonly number[];
  readonly json: boolean;
}

/** Options of a single bench. */
export interface OwnOptions<T> {
  readonly options: NonNullable<ParseArgsConfig["options"]>;
  /** Its lines of the usage. */
  readonly usage: string;
  /** Reads the given options; throws an Error for invalid ones. Absent options are undefined. */
  readonly read: (values: Readonly<Record<string, unknown>>) => T;
}

interface Defaults {
  readonly rounds: number;
  readonly pods: readonly number[];
}

const usage = `options:
  --containerd PATH   containerd to measure with (default: the newest that the set-up brought)
  --rounds N          repetitions of each measurement
  --pods N[,N…]       how many pods
  --program PATH      engine to measure (default: a bundle built now; src/cli/main.ts for the sources)
  --cpu-profile DIR   write the engine's CPU profile there
  --allocation-profile DIR
                      write a V8 heap profile there of all that the engine allocates
  --json              one JSON object instead of a table
`;

/** Parses the command line; prints the usage and ends the process if it is invalid. */
export function benchOptions(defaults: Defaults): BenchOptions;
export function benchOptions<T extends object>(defaults: Defaults, own: OwnOptions<T>): BenchOptions & T;
export function benchOptions(
  defaults: Defaults,
  own: OwnOptions<object> = { options: {}, usage: "", read: () => ({}) },
): BenchOptions {
  try {
    const { values } = parseArgs({
      options: {
        ...own.options,
        containerd: { type: "string" },
        rounds: { type: "string", default: String(defaults.rounds) },
        pods: { type: "string", default: defaults.pods.join(",") },
        program: { type: "string" },
        "cpu-profile": { type: "string" },
        "allocation-profile": { type: "string" },
        json: { type: "boolean", default: false },
      },
    });
    return {
      ...own.read(values),
      containerd: containerdPath(values.containerd),
      rounds: count(values.rounds),
      pods: counts(values.pods),
      cpuProfile: directoryOf(values["cpu-profile"]),
      allocationProfile: directoryOf(values["allocation-profile"]),
      json: values.json,
      // Last, because building takes a while.
      program: values.program === undefined ? builtBundle() : resolve(values.program),
    };
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n\n${usage}${own.usage}`);
    process.exit(2);
  }
}

function directoryOf(given: string | undefined): string | undefined {
  return given === undefined ? undefined : resolve(given);
}

/** Not in `dist`, which bin/podwright would prefer to the sources. */
function builtBundle(): string {
  const directory = join(root, ".cache/bench");
  execFileSync(process.execPath, [join(root, "scripts/build.ts"), directory], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  return join(directory, "podwright.js");
}

/** @throws Error for anything but an integer of at least 1 */
export function count(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) throw new Error(`"${text}" is no number of at least 1`);
  return value;
}

/** Numbers between commas. @throws Error as {@link count} does */
export function counts(text: string): number[] {
  return text.split(",").map(count);
}

function containerdPath(asked: string | undefined): string {
  const candidates =
    asked === undefined
      ? [
          join(root, ".cache/runtimes/sid/usr/bin/containerd"),
          join(root, ".cache/runtimes/trixie/usr/bin/containerd"),
          "/usr/bin/containerd",
        ]
      : [resolve(asked)];
  const found = candidates.find((path) => existsSync(path));
  if (found === undefined) throw new Error(`there is no ${candidates.join(", no ")}`);
  return found;
}
