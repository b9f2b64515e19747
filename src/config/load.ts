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

/** What a node's files and flags say, also where parts of it are unusable. */
export interface SurveyedConfiguration extends LoadedConfiguration {
  /** Unreadable files and fields of wrong types: the configuration lacks them. */
  readonly unusable: readonly PodwrightError[];
  /** Values that no kubelet would start with. */
  readonly problems: readonly string[];
  /** Of the warnings: those of decoding. */
  readonly leniencies: readonly string[];
  /** Whether the file of `--config` could be read, if there is one. */
  readonly hasBase: boolean;
}

/**
 * Loads the kubelet's configuration, like upstream: defaults, `--config`, the drop-ins of `--config-dir` in lexical
 * order (JSON merge patches), then the command line. Feature gates of files and flags are merged.
 * @throws PodwrightError (bad input) with all problems
 */
export async function loadConfiguration(deps: LoadDependencies, flags: KubeletFlags): Promise<LoadedConfiguration> {
  const { unusable, problems, leniencies, ...loaded } = await surveyConfiguration(deps, flags);
  refuseFiles(unusable);
  refuse(problems, leniencies);
  return loaded;
}

/** As {@link loadConfiguration}, and with all that it would reject. */
export async function surveyConfiguration(deps: LoadDependencies, flags: KubeletFlags): Promise<SurveyedConfiguration> {
  const { config, configDir } = flags.node;
  const { base, dropIns, errors: unusable } = await readFiles(deps, config, configDir);
  const decoded = [...(base ? [base] : []), ...dropIns];
  const leniencies: string[] = [...flags.warnings, ...decoded.flatMap((file) => file.warnings)];
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
  const problems = [
    ...gates.errors.map(({ gate, problem }) => {
      const place = placeOfField(layers, ["featureGates", gate]);
      return place === undefined ? problem : `${place}: ${problem}`;
    }),
    ...validateConfiguration(configuration, gates, deps).map((problem) => placed(problem, layers)),
    ...nodeLabelProblems(flags.node.nodeLabels ?? {}),
  ];
  const unhonoured = unhonouredFields(layers).map(({ place, field, because }) => {
    return `${place}: ${field}: not honoured: podwright ${because}`;
  });
  const warnings = [...leniencies, ...unhonoured, ...gates.warnings];
  const isWritten = (field: string): boolean =>
    layers.some(({ values }) => ![undefined, null, ""].includes(valueAt(values, field) as string | null | undefined));
  const hasBase = !config || base !== undefined;
  return { configuration, warnings, isWritten, unusable, problems, leniencies, hasBase };
}

interface DecodedFile extends DecodedConfiguration {
  readonly place: string;
}

/** The usable files, and what is wrong with the others. */
async function readFiles(
  { files, workingDirectory }: LoadDependencies,
  config: string | undefined,
  configDir: string | undefined,
): Promise<{
  readonly base: DecodedFile | undefined;
  readonly dropIns: readonly DecodedFile[];
  readonly errors: readonly PodwrightError[];
}> {
  const errors: PodwrightError[] = [];
  const attempt = async <T>(work: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof PodwrightError)) throw error;
      errors.push(error);
      return undefined;
    }
  };
  const decode = async (path: string): Promise<DecodedFile | undefined> => {
    const decoded = await attempt(() => decodeFile(files, path));
    if (decoded === undefined) return undefined;
    if (decoded.errors.length > 0) {
      errors.push(new PodwrightError(ExitCode.badInput, decoded.errors.map(({ message }) => message).join("\n")));
    }
    return { place: path, ...decoded };
  };
  const dropInFiles = configDir
    ? ((await attempt(() => dropInPaths(files, resolve(workingDirectory, configDir)))) ?? [])
    : [];
  const base = config ? await decode(resolve(workingDirectory, config)) : undefined;
  const dropIns: DecodedFile[] = [];
  for (const path of dropInFiles) {
    const decoded = await decode(path);
    if (decoded !== undefined) dropIns.push(decoded);
  }
  return { base, dropIns, errors };
}

function refuseFiles(errors: readonly PodwrightError[]): void {
  const [first, ...more] = errors;
  if (first === undefined) return;
  if (more.length === 0) throw first;
  const { remedy } = errors.find((error) => error.remedy !== undefined) ?? {};
  const message = errors.map((error) => error.message).join("\n");
  throw new PodwrightError(ExitCode.badInput, message, { cause: first, ...(remedy !== undefined && { remedy }) });
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
    { remedy: "correct or remove these fields or flags" },
  );
}
