import { join } from "node:path/posix";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import type { KubeletConfiguration } from "../config/defaults.ts";
import { parseKubeletFlags } from "../config/flags.ts";
import { loadConfiguration } from "../config/load.ts";
import { connectCri } from "../cri/client.ts";
import { socketEndpoint } from "../config/settings.ts";
import type { Files } from "../ports/files.ts";
import { type Check, failed, oneLine, passed, warned } from "../private-runtime/preflight/check.ts";
import { checkCgroups } from "../private-runtime/preflight/machine.ts";
import type { RuntimeInfo } from "../runtime-service/features.ts";
import { loadManifests, manifestNames } from "../sources/load.ts";
import type { MachineContext } from "./machine-context.ts";
import { pluginFindings } from "./plugin-findings.ts";
import { checkRuntime } from "./runtime-check.ts";
import { askSystemctl } from "./services.ts";
import { environmentIn, expanded, unitCommand } from "./kubelet-unit.ts";

/** The command line of the machine's kubelet. */
export interface InstalledKubelet {
  /** As written in its unit, with variables: a drop-in repeats them. */
  readonly parameters: string;
  /** As the program receives them. */
  readonly words: readonly string[];
}

const unit = "kubelet.service";
const maxFileBytes = 1024 * 1024;

/**
 * Reads the machine's kubelet.service with its drop-ins and environment files; undefined if there is none, or it starts nothing.
 * @throws PodwrightError when `systemctl cat` fails; FileError for an environment file
 */
export async function installedKubelet({
  files,
  processes,
}: Pick<MachineContext, "files" | "processes">): Promise<InstalledKubelet | undefined> {
  const { exitCode, stdout, stderr } = await askSystemctl(processes, ["cat", unit]);
  if (exitCode !== 0 && !stderr.startsWith("No files found for ")) {
    const reason = stderr.trim() || `exit code ${exitCode}`;
    throw new PodwrightError(ExitCode.environment, `systemctl cat ${unit}: ${reason}`, {
      remedy: `run it on a machine whose kubelet is the systemd service ${unit}`,
    });
  }
  const command = exitCode === 0 ? unitCommand(stdout) : undefined;
  if (command === undefined) return undefined;
  const environment: Record<string, string> = { ...command.environment };
  for (const { path, optional } of command.environmentFiles) {
    if (optional && (await files.stat(path)) === undefined) continue;
    Object.assign(environment, environmentIn(new TextDecoder().decode(await files.read(path, maxFileBytes))));
  }
  // After 'podwright join' the program is `podwright kubelet`.
  const parameters = command.parameters.replace(/^kubelet(?:\s+|$)/u, "");
  return { parameters, words: expanded(parameters, environment) };
}

/** Checks what would change if podwright were this node's kubelet, by the node's own files. */
export async function kubeletFindings(
  context: MachineContext,
  kubelet: InstalledKubelet,
  cgroupVersion: 1 | 2,
): Promise<readonly Check[]> {
  const loaded = await configurationOf(context.files, kubelet, cgroupVersion);
  if (!("configuration" in loaded)) return loaded.failures;
  const { configuration, warnings, rootDirectory } = loaded;
  return [
    warnings.length === 0 ? passed("configuration", "every field and flag is honoured") : undefined,
    ...warnings.map((warning) => warned("configuration", warning, "see docs/configuration.md")),
    await checkCgroups({ ...context, searchPath: [] }),
    ...(await runtimeChecks(context, configuration)),
    ...(await manifestChecks(context, configuration)),
    ...(await pluginFindings(context, rootDirectory)),
  ].filter((check) => check !== undefined);
}

async function configurationOf(
  files: Files,
  { words }: InstalledKubelet,
  cgroupVersion: 1 | 2,
): Promise<
  | {
      readonly configuration: KubeletConfiguration;
      readonly warnings: readonly string[];
      readonly rootDirectory: string;
    }
  | { readonly failures: readonly Check[] }
> {
  try {
    const flags = parseKubeletFlags(words);
    const { configuration, warnings } = await loadConfiguration({ files, workingDirectory: "/", cgroupVersion }, flags);
    return {
      configuration,
      warnings: warnings.filter(differs),
      rootDirectory: flags.node.rootDir || "/var/lib/kubelet",
    };
  } catch (error) {
    if (!(error instanceof PodwrightError)) throw error;
    return { failures: failureChecks(error.message, error.remedy ?? "change the field or flag first") };
  }
}

/** Whether the Go kubelet does not warn of the same. */
function differs(warning: string): boolean {
  return !/^Flag --\S+ has been deprecated\b/u.test(warning);
}

/** @param message a problem or warning per line, with or without a heading */
function failureChecks(message: string, remedy: string): readonly Check[] {
  const lines = message.split("\n").map((line) => line.trim());
  const checks = lines.flatMap((line) => {
    const warning = /^warning: (.*)$/u.exec(line)?.[1];
    if (warning !== undefined) return differs(warning) ? [warned("configuration", warning, remedy)] : [];
    return line.endsWith(":") ? [] : [failed("configuration", line, remedy)];
  });
  // A node is never joined with a configuration that was rejected.
  return checks.some(({ ok }) => ok === "failed") ? checks : [failed("configuration", oneLine(message), remedy)];
}

async function runtimeChecks(
  { clock }: MachineContext,
  { containerRuntimeEndpoint, cgroupDriver }: KubeletConfiguration,
): Promise<readonly Check[]> {
  const endpoint = socketEndpoint("containerRuntimeEndpoint", containerRuntimeEndpoint);
  using cri = connectCri(endpoint, clock);
  return await checkRuntime(cri, clock, endpoint, (runtime) => [driverCheck(cgroupDriver, runtime)]);
}

/** Which cgroup driver podwright would use: that of the runtime, as the Go kubelet does (KEP-4033). */
function driverCheck(configured: string, { name, cgroupDriver }: RuntimeInfo): Check {
  if (cgroupDriver === undefined) {
    return passed(
      "cgroup driver",
      `${configured}, as configured; ${name} does not report its own, which must be the same`,
    );
  }
  const instead = configured === cgroupDriver ? "" : ` instead of ${configured}, which is configured`;
  return passed("cgroup driver", `${cgroupDriver}, as ${name} reports${instead}`);
}

/** Static pods that podwright would reject, and how many keep the UIDs of running pods. */
async function manifestChecks(
  { clock, files, network }: MachineContext,
  { staticPodPath = "" }: KubeletConfiguration,
): Promise<readonly Check[]> {
  if (staticPodPath === "") return [];
  const deps = { clock, files, network, workingDirectory: "/", readStandardInput: undefined };
  const paths = (await manifestNames(files, staticPodPath)).map((name) => join(staticPodPath, name));
  const { pods, errors } = await loadManifests(paths, deps, AbortSignal.any([]));
  const rejected = errors.map(({ message }) => failed("static pods", message, "podwright would not run this pod"));
  const without = pods.filter(({ metadata: { uid } }) => uid === undefined).length;
  const understood = pods.length === 1 ? "1 manifest is" : `${pods.length} manifests are`;
  const kept = `${understood} valid, ${without} without metadata.uid: their running pods keep their UIDs`;
  return [...rejected, passed("static pods", kept)];
}
