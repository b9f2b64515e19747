import { dirname, join, resolve } from "node:path/posix";
import { errorMessage, ExitCode, PodwrightError } from "../base/errors.ts";
import { FileError, type Files } from "../ports/files.ts";
import type { DecodedConfiguration } from "./decode.ts";
import { defaultEvictionHard, withDefaults, withLegacyDefaults, type KubeletConfiguration } from "./defaults.ts";
import { featureGates } from "./feature-gates.ts";
import { flagLayer, type KubeletFlags } from "./flags.ts";
import { isJsonMap, mergePatch, valueAt, withValueAt, type JsonMap } from "./json.ts";
import { nodeLabelProblems } from "./node-options.ts";
import type { PartialConfiguration } from "./schema.ts";
import { unhonouredFields, type ConfigurationLayer } from "./unhonoured.ts";
import { validateConfiguration } from "./validate.ts";

export interface LoadDependencies {
  readonly files: Pick<Files, "read" | "list" | "stat">;
  /** Absolute: what relative paths of flags and drop-ins start at. */
  readonly workingDirectory: string;
  readonly cgroupVersion: 1 | 2;
}

/** A configuration that is valid on this machine. */
export interface LoadedConfiguration {
  readonly configuration: KubeletConfiguration;
  /** What the owner of the node should know: lenient decoding, fields and gates without effect. */
  readonly warnings: readonly string[];
}

/** As much as anybody writes by hand, many times over. */
const maxConfigurationBytes = 1024 * 1024;

/**
 * Puts the kubelet's configuration together, as upstream does: defaults, `--config`, the drop-ins of `--config-dir` in
 * lexical order (each a JSON merge patch), and the command line on top. Feature gates of files and flags are merged.
 * @throws PodwrightError (bad input) naming everything that is wrong
 */
export async function loadConfiguration(deps: LoadDependencies, flags: KubeletFlags): Promise<LoadedConfiguration> {
  const { config, configDir } = flags.node;
  const warnings: string[] = [...flags.warnings];
  const layers: ConfigurationLayer[] = [];
  let configuration = withFlags(withLegacyDefaults(withDefaults({})), flags);
  if (config) configuration = await baseFile(deps, resolve(deps.workingDirectory, config), layers, warnings);
  if (configDir) {
    for (const path of await dropIns(deps.files, resolve(deps.workingDirectory, configDir))) {
      const { configuration: values, patch, warnings: found } = await decodeFile(deps.files, path);
      layers.push({ place: path, values });
      warnings.push(...found);
      configuration = mergePatch(configuration, patch) as KubeletConfiguration;
    }
    configuration = withDefaults(configuration);
  }
  if (config || configDir) configuration = withFlags(configuration, flags);
  layers.push({ place: "the command line", values: flagLayer(flags.fields) });
  if (flags.node.seccompDefault === true) configuration = { ...configuration, seccompDefault: true };
  configuration = withAbsolutePaths(configuration, deps.workingDirectory, ["podLogsDir"]);

  const gates = featureGates(configuration.featureGates);
  const unhonoured = unhonouredFields(layers);
  refuse(
    [
      ...validateConfiguration(configuration, gates, deps),
      ...nodeLabelProblems(flags.node.nodeLabels ?? {}),
      ...unhonoured
        .filter(({ kind }) => kind === "refused")
        .map(({ place, field, because }) => `${place}: ${field}: not supported: podwright ${because}`),
    ],
    warnings,
  );
  for (const { kind, place, field, because } of unhonoured) {
    if (kind === "ignored") warnings.push(`${place}: ${field}: not honoured: podwright ${because}`);
  }
  warnings.push(...gates.withoutEffect.map((gate) => `feature gate ${gate} has no effect in podwright`));
  return { configuration, warnings };
}

async function baseFile(
  deps: LoadDependencies,
  path: string,
  layers: ConfigurationLayer[],
  warnings: string[],
): Promise<KubeletConfiguration> {
  const decoded = await decodeFile(deps.files, path);
  layers.push({ place: path, values: decoded.configuration });
  warnings.push(...decoded.warnings);
  const configuration = withAbsolutePaths(withDefaults(decoded.configuration), dirname(path));
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
  // The schema library is loaded only when there is a file to read.
  const { decodeConfiguration } = await import("./decode.ts");
  return decodeConfiguration(bytes, path);
}

/** The `.conf` files in the directory and below it, in lexical order. */
async function dropIns(files: LoadDependencies["files"], directory: string): Promise<string[]> {
  if ((await files.stat(directory)) === undefined) {
    throw new PodwrightError(ExitCode.badInput, `--config-dir ${directory}: no such directory`);
  }
  const paths: string[] = [];
  const entries = (await files.list(directory)).toSorted((a, b) => (a.name < b.name ? -1 : 1));
  for (const { name, type } of entries) {
    const path = join(directory, name);
    if (type === "directory") paths.push(...(await dropIns(files, path)));
    else if (name.endsWith(".conf")) paths.push(path);
  }
  return paths;
}

/** The command line over a configuration. Gates that it does not name stay as they are. */
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

/** @param warnings of what was left out: a field whose name is misspelled may be what is missing */
function refuse(problems: readonly string[], warnings: readonly string[]): void {
  if (problems.length === 0) return;
  const leftOut = warnings.map((warning) => `warning: ${warning}`);
  throw new PodwrightError(
    ExitCode.badInput,
    ["the kubelet's configuration can't be used:", ...problems, ...leftOut].join("\n  "),
    { remedy: "docs/configuration.md says what this version takes" },
  );
}
