import { join } from "node:path/posix";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import type { KubeletConfiguration } from "../config/defaults.ts";
import { readKubeletFlags } from "../config/flags.ts";
import { type SurveyedConfiguration, surveyConfiguration } from "../config/load.ts";
import { connectCri } from "../cri/client.ts";
import { socketEndpoint } from "../config/settings.ts";
import { FileError } from "../ports/files.ts";
import { type Check, failed, oneLine, passed, warned } from "../private-runtime/preflight/check.ts";
import { checkCgroups } from "../private-runtime/preflight/machine.ts";
import type { RuntimeInfo } from "../runtime-service/features.ts";
import { loadManifests, manifestNames } from "../sources/load.ts";
import type { MachineContext } from "./machine-context.ts";
import { pluginFindings } from "./plugin-findings.ts";
import { checkRuntime } from "./runtime-check.ts";
import { askSystemctl } from "./services.ts";
import { startFindings } from "./start-findings.ts";
import { environmentIn, expanded, unitCommand } from "./kubelet-unit.ts";

/** The command line of the machine's kubelet. */
export interface InstalledKubelet {
  /** Where its unit gets flags from: `kubeadm-flags.env` and others, besides itself. */
  readonly flagFiles: readonly string[];
  /** As written in its unit, with variables: a drop-in repeats them. */
  readonly parameters: string;
  /** As the program receives them. */
  readonly words: readonly string[];
}

const unit = "kubelet.service";
const maxFileBytes = 1024 * 1024;

/**
 * Reads the machine's kubelet.service with its drop-ins and environment files; undefined if there is none, or it starts nothing.
 * @throws PodwrightError when `systemctl cat` fails, or an environment file is missing
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
    Object.assign(environment, environmentIn(await environmentFile(files, path)));
  }
  // After 'podwright join' the program is `podwright kubelet`.
  const parameters = command.parameters.replace(/^kubelet(?:\s+|$)/u, "");
  const flagFiles = command.environmentFiles.map(({ path }) => path);
  return { flagFiles, parameters, words: expanded(parameters, environment) };
}

async function environmentFile(files: MachineContext["files"], path: string): Promise<string> {
  try {
    return new TextDecoder().decode(await files.read(path, maxFileBytes));
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    throw new PodwrightError(ExitCode.environment, `${unit} needs an environment file: ${error.message}`, {
      cause: error,
      remedy: "the service cannot start without it: write it, or put a - before its path in the unit",
    });
  }
}

/**
 * Checks what would change if podwright were this node's kubelet, by the node's own files. A problem of the configuration hides
 * nothing else: the rest is checked by what is left of it.
 */
export async function kubeletFindings(
  context: MachineContext,
  kubelet: InstalledKubelet,
  cgroupVersion: 1 | 2,
): Promise<readonly Check[]> {
  const { flags, problems } = readKubeletFlags(kubelet.words);
  const reading = { files: context.files, workingDirectory: "/", cgroupVersion };
  const survey = await surveyConfiguration(reading, flags);
  const { configuration, hasBase, isWritten } = survey;
  // Defaults in the place of an unreadable file would be those of another node.
  const isKnown = (field: string): boolean => hasBase || isWritten(field);
  const { rootDir } = flags.node;
  return [
    ...configurationChecks(problems, survey, [unit, ...kubelet.flagFiles]),
    await checkCgroups({ ...context, searchPath: [] }),
    ...(isKnown("containerRuntimeEndpoint") ? await runtimeChecks(context, configuration) : []),
    ...(hasBase ? await startFindings(survey, flags.node) : []),
    ...(isKnown("staticPodPath") ? await manifestChecks(context, configuration) : []),
    ...(await pluginChecks(context, rootDir || "/var/lib/kubelet")),
  ];
}

function configurationChecks(
  flagProblems: readonly string[],
  { unusable, problems, warnings }: SurveyedConfiguration,
  flagFiles: readonly string[],
): readonly Check[] {
  const bad = (message: string, remedy: string): readonly Check[] =>
    message.split("\n").map((line) => failed("configuration", line.trim(), remedy));
  const found = [
    ...flagProblems.flatMap((problem) =>
      bad(problem, `correct or remove it in ${flagFiles.join(" or ")}; podwright kubelet --help lists the flags`),
    ),
    ...unusable.flatMap(({ message, remedy }) => bad(message, remedy ?? "change the field or flag first")),
    ...problems.flatMap((problem) => bad(problem, "correct or remove the field or flag")),
    ...warnings
      .filter(differs)
      .map((warning) =>
        warned("configuration", warning, "podwright goes without it: remove it, or keep the kubelet if pods need it"),
      ),
  ];
  return found.length === 0 ? [passed("configuration", "every field and flag is honoured")] : found;
}

/** Whether the Go kubelet does not warn of the same. */
function differs(warning: string): boolean {
  return !/^Flag --\S+ has been deprecated\b/u.test(warning);
}

async function runtimeChecks(
  { clock }: MachineContext,
  { containerRuntimeEndpoint, cgroupDriver }: KubeletConfiguration,
): Promise<readonly Check[]> {
  let endpoint: string;
  try {
    endpoint = socketEndpoint("containerRuntimeEndpoint", containerRuntimeEndpoint);
  } catch (error) {
    if (!(error instanceof PodwrightError)) throw error;
    return [failed("runtime", oneLine(error.message), error.remedy ?? "correct containerRuntimeEndpoint")];
  }
  using cri = connectCri(endpoint, clock);
  return await checkRuntime(
    cri,
    clock,
    endpoint,
    (runtime) => [driverCheck(cgroupDriver, runtime)],
    "containerRuntimeEndpoint",
  );
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
  const deps = { clock, files, network, workingDirectory: "/", readDescriptor: undefined, areStatic: true } as const;
  const unreadable: Check[] = [];
  const names = await manifestNames(files, staticPodPath).catch((error: unknown) => {
    if (!(error instanceof FileError)) throw error;
    // One manifest may also be named.
    if (error.code !== "ENOTDIR") unreadable.push(unlisted("static pods", staticPodPath, error));
    return undefined;
  });
  if (unreadable.length > 0) return unreadable;
  const paths = names?.map((name) => join(staticPodPath, name)) ?? [staticPodPath];
  const { pods, errors } = await loadManifests(paths, deps, AbortSignal.any([]));
  const rejected = errors.map(({ message }) => failed("static pods", message, "podwright would not run this pod"));
  const without = pods.filter(({ metadata: { uid } }) => uid === undefined).length;
  const understood = pods.length === 1 ? "1 manifest is" : `${pods.length} manifests are`;
  const kept = `${understood} valid, ${without} without metadata.uid: their running pods keep their UIDs`;
  return [...rejected, passed("static pods", kept)];
}

async function pluginChecks(context: MachineContext, rootDirectory: string): Promise<readonly Check[]> {
  try {
    return await pluginFindings(context, rootDirectory);
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    return [unlisted("plugins", rootDirectory, error)];
  }
}

function unlisted(name: string, directory: string, error: FileError): Check {
  return failed(
    name,
    `cannot look at ${directory}: ${error.message}`,
    "run this command as root, and check the directory",
  );
}
