import { dirname, join, resolve } from "node:path/posix";
import { errorMessage, ExitCode, PodwrightError } from "../base/errors.ts";
import { type DirectoryEntry, FileError, type Files } from "../ports/files.ts";
import { decodeConfiguration, type DecodedConfiguration } from "./decode.ts";
import { defaultEvictionHard, withDefaults, withLegacyDefaults, type KubeletConfiguration } from "./defaults.ts";
import { featureGates } from "./feature-gates.ts";
import { flagLayer, type KubeletFlags } from "./flags.ts";
import { isJsonMap, mergePatch, valueAt, withValueAt, type JsonMap } from "./json.ts";
import { nodeLabelProblems } from "./node-options.ts";
import { placed, placeOfField, type ConfigurationLayer } from "./places.ts";
import type { PartialConfiguration } from "./schema.ts";
import { unhonouredFields } from "./unhonoured.ts";
import { validateConfiguration } from "./validate.ts";

export interface LoadDependencies {
  readonly files: Pick<Files, "read" | "list" | "stat">;
  /** Absolute: the base of relative paths in flags and drop-ins. */
  readonly workingDirectory: string;
  readonly cgroupVersion: 1 | 2;
}

/** A configuration that is valid on this machine. */
export interface LoadedConfiguration {
  readonly configuration: KubeletConfiguration;
  /** For the node's owner: lenient decoding, fields and gates without effect. */
  readonly warnings: readonly string[];
  /** Whether a file, a drop-in or a flag sets the field (dotted path); otherwise it has its default. */
  readonly isWritten: (field: string) => boolean;
}

/** Many times a handwritten file. */
const maxConfigurationBytes = 1024 * 1024;

/**
 * Loads the kubelet's configuration, like upstream: defaults, `--config`, the drop-ins of `--config-dir` in lexical
 * order (JSON merge patches), then the command line. Feature gates of files and flags are merged.
 * @throws PodwrightError (bad input) with all problems
 */
export async function loadConfiguration(deps: LoadDependencies, flags: KubeletFlags): Promise<LoadedConfiguration> {
  const { config, configDir } = flags.node;
  const { base, dropIns } = await readFiles(deps, config, configDir);
  const decoded = [...(base ? [base] : []), ...dropIns];
  const warnings: string[] = [...flags.warnings, ...decoded.flatMap((file) => file.warnings)];
  const layers: ConfigurationLayer[] = decoded.map(({ place, configuration: values, origin }) => {
    return { place, values, origin };
  });
  const flagGates = (flags.fields.get("featureGates") ?? {}) as Readonly<Record<string, boolean>>;
  let configuration = base
    ? baseConfiguration(base, flagGates)
    : withFlags(withLegacyDefaults(withDefaults({}, flagGates)), flags);
  if (configDir) {
    for (const { patch } of dropIns) configuration = mergePatch(configuration, patch) as KubeletConfiguration;
    configuration = withDefaults(configuration, flagGates);
  }
  if (config || configDir) configuration = withFlags(configuration, flags);
  layers.push({ place: "the command line", values: flagLayer(flags.fields) });
  if (flags.node.seccompDefault === true) configuration = { ...configuration, seccompDefault: true };
  configuration = withAbsolutePaths(configuration, deps.workingDirectory, ["podLogsDir"]);

  const gates = featureGates(configuration.featureGates);
  refuse(
    [
      ...gates.errors.map(({ gate, problem }) => {
        const place = placeOfField(layers, ["featureGates", gate]);
        return place === undefined ? problem : `${place}: ${problem}`;
      }),
      ...validateConfiguration(configuration, gates, deps).map((problem) => placed(problem, layers)),
      ...nodeLabelProblems(flags.node.nodeLabels ?? {}),
    ],
    warnings,
  );
  for (const { place, field, because } of unhonouredFields(layers)) {
    warnings.push(`${place}: ${field}: not honoured: podwright ${because}`);
  }
  warnings.push(...gates.warnings);
  const isWritten = (field: string): boolean =>
    layers.some(({ values }) => ![undefined, null, ""].includes(valueAt(values, field) as string | null | undefined));
  return { configuration, warnings, isWritten };
}

interface DecodedFile extends DecodedConfiguration {
  readonly place: string;
}

/** @throws PodwrightError (bad input) for all unusable files, not just the first */
async function readFiles(
  { files, workingDirectory }: LoadDependencies,
  config: string | undefined,
  configDir: string | undefined,
): Promise<{ readonly base: DecodedFile | undefined; readonly dropIns: readonly DecodedFile[] }> {
  const paths = [
    ...(config ? [resolve(workingDirectory, config)] : []),
    ...(configDir ? await dropInPaths(files, resolve(workingDirectory, configDir)) : []),
  ];
  const decoded: DecodedFile[] = [];
  const errors: PodwrightError[] = [];
  for (const path of paths) {
    try {
      decoded.push({ place: path, ...(await decodeFile(files, path)) });
    } catch (error) {
      if (!(error instanceof PodwrightError)) throw error;
      errors.push(error);
    }
  }
  const [first, ...more] = errors;
  if (first !== undefined && more.length === 0) throw first;
  if (first !== undefined) {
    const { remedy } = errors.find((error) => error.remedy !== undefined) ?? {};
    const message = errors.map((error) => error.message).join("\n");
    throw new PodwrightError(ExitCode.badInput, message, { cause: first, ...(remedy !== undefined && { remedy }) });
  }
  const [base, ...rest] = decoded;
  return config ? { base, dropIns: rest } : { base: undefined, dropIns: decoded };
}

function baseConfiguration(
  { place, configuration: given }: DecodedFile,
  flagGates: Readonly<Record<string, boolean>>,
): KubeletConfiguration {
  const configuration = withAbsolutePaths(withDefaults(given, flagGates), dirname(place));
  const { evictionHard, mergeDefaultEvictionSettings } = configuration;
  if (evictionHard === undefined) return { ...configuration, evictionHard: { ...defaultEvictionHard } };
  if (!mergeDefaultEvictionSettings) return configuration;
  return { ...configuration, evictionHard: { ...defaultEvictionHard, ...evictionHard } };
}

async function decodeFile(files: LoadDependencies["files"], path: string): Promise<DecodedConfiguration> {
  let bytes: Uint8Array;
  try {
    bytes = await files.read(path, maxConfigurationBytes);
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    throw new PodwrightError(ExitCode.badInput, `failed to read kubelet config file: ${errorMessage(error)}`, {
      cause: error,
      remedy: "check --config and --config-dir",
    });
  }
  return decodeConfiguration(bytes, path);
}

/** The `.conf` files in and below the directory, in lexical order. */
async function dropInPaths(files: LoadDependencies["files"], directory: string): Promise<string[]> {
  const paths: string[] = [];
  for (const { name, type } of (await listed(files, directory)).toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = join(directory, name);
    if (type === "directory") paths.push(...(await dropInPaths(files, path)));
    else if (name.endsWith(".conf")) paths.push(path);
  }
  return paths;
}

async function listed(files: LoadDependencies["files"], directory: string): Promise<readonly DirectoryEntry[]> {
  const unusable = (problem: string, cause?: unknown): PodwrightError => {
    return new PodwrightError(ExitCode.badInput, `--config-dir ${directory}: ${problem}`, {
      cause,
      remedy: "use a directory of *.conf files; use --config for a single file",
    });
  };
  try {
    if ((await files.stat(directory)) === undefined) throw unusable("no such directory");
    return await files.list(directory);
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    throw unusable(error.code === "ENOTDIR" ? "is not a directory" : errorMessage(error), error);
  }
}

/** Applies the command line. Gates that it does not name keep their value. */
function withFlags(configuration: KubeletConfiguration, { fields }: KubeletFlags): KubeletConfiguration {
  let values: JsonMap = configuration;
  for (const [field, value] of fields) {
    const before = field === "featureGates" ? valueAt(values, field) : undefined;
    const merged = isJsonMap(before) && isJsonMap(value) ? { ...before, ...value } : value;
    values = withValueAt(values, field, merged);
  }
  return values as KubeletConfiguration;
}

/** The fields that hold paths (upstream's KubeletConfigurationPathRefs). */
const pathFields = [
  "staticPodPath",
  "authentication.x509.clientCAFile",
  "tlsCertFile",
  "tlsPrivateKeyFile",
  "resolvConf",
  "volumePluginDir",
  "podLogsDir",
] as const;

function withAbsolutePaths(
  configuration: KubeletConfiguration,
  root: string,
  except: readonly string[] = [],
): KubeletConfiguration {
  let values: JsonMap = configuration;
  for (const field of pathFields) {
    const path = valueAt(values, field);
    if (typeof path !== "string" || path === "" || path.startsWith("/") || except.includes(field)) continue;
    values = withValueAt(values, field, join(root, path));
  }
  return values as KubeletConfiguration & PartialConfiguration;
}

/** @param warnings about unknown fields: a misspelled one may be the missing one */
function refuse(problems: readonly string[], warnings: readonly string[]): void {
  if (problems.length === 0) return;
  const leftOut = warnings.map((warning) => `warning: ${warning}`);
  throw new PodwrightError(
    ExitCode.badInput,
    ["invalid kubelet configuration:", ...problems, ...leftOut].join("\n  "),
    { remedy: "see docs/configuration.md for the supported fields" },
  );
}
