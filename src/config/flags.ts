import { errorMessage, ExitCode, PodwrightError } from "../base/errors.ts";
import { didYouMean } from "../base/did-you-mean.ts";
import { configurationFlags, lastingFlags, type FlagKind } from "./flag-table.ts";
import { flagValue } from "./flag-values.ts";
import { withValueAt, type JsonMap } from "./json.ts";
import { nodeFlags } from "./node-flag-table.ts";
import { removedFlag, withoutExperimental } from "./removed-flags.ts";
import type { VersionFlag } from "./version-flag.ts";

/** The parsed command line of `podwright kubelet`. */
export interface KubeletFlags {
  readonly help: boolean;
  /** Values by dotted path of the KubeletConfiguration field. */
  readonly fields: ReadonlyMap<string, unknown>;
  /** The other flags. */
  readonly node: NodeFlagValues;
  /** For the log: deprecated flags, and flags without effect. */
  readonly warnings: readonly string[];
}

/** Honoured flags without a field of KubeletConfiguration. */
export interface NodeFlagValues {
  readonly config?: string;
  readonly kubeconfig?: string;
  readonly bootstrapKubeconfig?: string;
  readonly configDir?: string;
  readonly rootDir?: string;
  readonly stateDir?: string;
  readonly hostnameOverride?: string;
  readonly nodeIp?: string;
  readonly nodeLabels?: Readonly<Record<string, string>>;
  readonly lockFile?: string;
  readonly exitOnLockContention?: boolean;
  readonly seccompDefault?: boolean;
  readonly certDir?: string;
  readonly tokenAuthFile?: string;
  readonly nodePage?: boolean;
  readonly confirmEvictions?: boolean;
  readonly evictionMemory?: string;
  readonly record?: string;
  readonly runtimeCgroups?: string;
  readonly cloudProvider?: string;
  readonly imageCredentialProviderConfig?: string;
  readonly imageCredentialProviderBinDir?: string;
  readonly experimentalAllocatableIgnoreEviction?: boolean;
  readonly minimumContainerTtlDuration?: string;
  readonly maximumDeadContainersPerContainer?: number;
  readonly maximumDeadContainers?: number;
  readonly cloudMetadata?: string;
  readonly cloudMetadataUrl?: string;
  readonly version?: VersionFlag;
}

/**
 * Parses flags like upstream (pflag): `--name value` or `--name=value`, `_` for `-`; a bare boolean is true; the last
 * of repeated flags wins, except for lists and maps; a bare `--` ends them. Pure.
 * @throws PodwrightError (bad input) with all problems
 */
export function parseKubeletFlags(arguments_: readonly string[]): KubeletFlags {
  const { flags, problems } = readKubeletFlags(arguments_);
  if (problems.length > 0) throw badFlag(problems.join("\n"));
  return flags;
}

/** As {@link parseKubeletFlags}: the usable flags, and what is wrong with the others. */
export function readKubeletFlags(arguments_: readonly string[]): {
  readonly flags: KubeletFlags;
  readonly problems: readonly string[];
} {
  const fields = new Map<string, unknown>();
  const node = new Map<string, unknown>();
  const warnings = new Set<string>();
  const problems: string[] = [];
  const rest = [...arguments_];
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    if (word === "--help" || word === "-h") return { flags: { help: true, fields, node: {}, warnings: [] }, problems };
    if (word === "--") {
      const [first] = rest;
      if (first !== undefined) problems.push(`unknown command ${JSON.stringify(first)}`);
      break;
    }
    const flag = removedFlagProblem(word) ?? flagOf(word);
    if (typeof flag === "string") {
      problems.push(flag);
      // Its value, most likely.
      if (word.startsWith("-") && !word.includes("=") && rest[0]?.startsWith("-") === false) rest.shift();
      continue;
    }
    const { name, kind, given } = flag;
    const text = given ?? (kind === "bool" || kind === "version" ? "true" : rest.shift());
    if (text === undefined) {
      problems.push(`flag needs an argument: --${name}`);
      break;
    }
    const field = configurationFlags.get(name)?.field;
    const [values, key] = field === undefined ? [node, name] : [fields, field];
    try {
      const value = flagValue(kind, text, values.get(key));
      if (value !== undefined) values.set(key, value);
      for (const warning of warningsOf(name, text)) warnings.add(warning);
    } catch (error) {
      // Headers may be secrets.
      const shown = kind === "headers" ? "" : ` ${JSON.stringify(text)}`;
      problems.push(`invalid argument${shown} for --${name}: ${errorMessage(error)}`);
    }
  }
  return { flags: { help: false, fields, node: nodeValues(node), warnings: [...warnings] }, problems };
}

/** The fields that the command line sets, as a partial configuration. */
export function flagLayer(fields: KubeletFlags["fields"]): JsonMap {
  let values: JsonMap = {};
  for (const [field, value] of fields) values = withValueAt(values, field, value);
  return values;
}

/** @returns a problem, if it is none that is known */
function flagOf(word: string): { name: string; kind: FlagKind; given: string | undefined } | string {
  // The only short flag with a value: -v4, -v=4, -v 4.
  const short = /^-v=?(.*)$/su.exec(word);
  if (short !== null) return { name: "v", kind: "int", given: short[1] === "" ? undefined : short[1] };
  const match = /^--([^=]+)(?:=(.*))?$/su.exec(word);
  if (match === null) {
    return word.startsWith("-") ? `unknown flag: ${word}` : `unknown command ${JSON.stringify(word)}`;
  }
  const name = (match[1] ?? "").replaceAll("_", "-");
  const kind =
    configurationFlags.get(name)?.kind ?? (Object.hasOwn(nodeFlags, name) ? nodeFlags[name]?.kind : undefined);
  if (kind !== undefined) return { name, kind, given: match[2] };
  const known = [...configurationFlags.keys(), ...Object.keys(nodeFlags)];
  const plain = withoutExperimental(name);
  const meant = known.includes(plain) ? plain : didYouMean(name, known);
  return `unknown flag: --${name}${meant === undefined ? "" : `; did you mean --${meant}?`}`;
}

/** The remedy for a removed flag. */
function removedFlagProblem(word: string): string | undefined {
  const name = /^--([^=]+)/u.exec(word)?.[1]?.replaceAll("_", "-");
  const problem = name === undefined ? undefined : removedFlag(name);
  return problem === undefined ? undefined : `unknown flag: --${name}: ${problem}`;
}

function warningsOf(name: string, text: string): string[] {
  if (configurationFlags.has(name)) {
    if (lastingFlags.has(name)) return [];
    return [
      `Flag --${name} has been deprecated, This parameter should be set via the config file specified by --config.`,
    ];
  }
  const flag = nodeFlags[name];
  if (flag === undefined || flag.support === "honoured" || flag.harmless?.includes(text)) return [];
  return [`Flag --${name} is not honoured: podwright ${flag.text}`];
}

function nodeValues(values: ReadonlyMap<string, unknown>): NodeFlagValues {
  const entries = [...values].map(([name, value]) => {
    return [name.replaceAll(/-([a-z])/gu, (_, letter: string) => letter.toUpperCase()), value] as const;
  });
  return Object.fromEntries(entries) as NodeFlagValues;
}

function badFlag(message: string): PodwrightError {
  return new PodwrightError(ExitCode.badInput, message, { remedy: "see podwright kubelet --help" });
}

/** A flag that `podwright kubelet --help` shows. */
export interface ShownFlag {
  /** `--node-ip` */
  readonly name: string;
  /** What it does, or the field that it sets. */
  readonly text: string;
  /** False: alone it means true. */
  readonly takesValue: boolean;
}

/** The flags that `podwright kubelet --help` shows: those of its own, and those that set a field of the configuration. */
export function shownFlags(): { readonly own: readonly ShownFlag[]; readonly ofFields: readonly ShownFlag[] } {
  const shown = (name: string, kind: FlagKind, text: string): ShownFlag => {
    return { name: `--${name}`, text, takesValue: kind !== "bool" && kind !== "version" };
  };
  const honoured = Object.entries(nodeFlags).filter(([, { support }]) => support === "honoured");
  return {
    own: honoured.map(([name, { kind, text }]) => shown(name, kind, text)),
    ofFields: [...configurationFlags].map(([name, { kind, field }]) => shown(name, kind, field)),
  };
}

/** The help of `podwright kubelet`. */
export function kubeletHelp(): string {
  const { own, ofFields } = shownFlags();
  return [
    "Usage: podwright kubelet [flags]",
    "",
    "Runs the node agent in the foreground. It owns every pod of its runtime; pods come from the API server of --kubeconfig,",
    "from the files of staticPodPath and from staticPodURL. SIGTERM ends it and leaves the pods running; the next start",
    "takes them over.",
    "",
    "Flags:",
    ...aligned(own),
    "",
    "Flags that set a field of the configuration, with precedence over files:",
    ...aligned(ofFields),
    "",
    "'podwright doctor --kubelet' shows which flags and fields of a node this version ignores or refuses.",
    "",
    "  podwright kubelet --config /var/lib/kubelet/config.yaml",
    "  podwright ps --state-dir /var/lib/kubelet/podwright",
  ].join("\n");
}

function aligned(flags: readonly ShownFlag[]): string[] {
  const width = Math.max(...flags.map(({ name }) => name.length));
  return flags.map(({ name, text }) => `  ${name.padEnd(width)}  ${text}`);
}
