import { basename, dirname, join, resolve } from "node:path/posix";
import { runtimeOfPods } from "../agent/kept-settings.ts";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import { removeEmpty } from "../ports/files.ts";
import { preflight, requireReady } from "../private-runtime/preflight/preflight.ts";
import type { ApplyRequest } from "../server/local-api.ts";
import { podLabel } from "../server/pod-selector.ts";
import { isManifestName, manifestNames } from "../sources/load.ts";
import { endEngine, enginePids, findEngine, searchPath } from "./engine-process.ts";
import { printError, printWarning } from "./error-output.ts";
import { Interrupts } from "./interrupts.ts";
import type { MachineContext } from "./machine-context.ts";
import { copyManifests, replacedPods } from "./manifest-copies.ts";
import { loadInput, pathType } from "./manifest-input.ts";
import { ownProgram } from "./own-command.ts";
import { engineService, engineUnit, type ServicePlaces } from "./service-units.ts";
import { isActive, requireOwnUnit, requireSystemd, systemctl, writeUnit } from "./services.ts";

/** Limit for systemd to start the service's process. */
const besideLimitMs = 5000;
const besidePollMs = 20;

/**
 * `podwright enable`: copies manifests, and runs them now and after each boot as a systemd service. Nothing is changed if one
 * of them is invalid, or the machine cannot run pods.
 */
export async function enableCommand(
  context: MachineContext,
  operands: readonly string[],
  places: ServicePlaces,
): Promise<ExitCode> {
  const { terminal, files, layout, processes, mounts } = context;
  using interrupts = new Interrupts(process, terminal.closed);
  const manifests = await manifestFiles(context, operands);
  const { request, errors, warnings } = await loadInput(context, [...manifests.values()], interrupts.first);
  for (const error of errors) printError(terminal, error);
  for (const warning of warnings) printWarning(terminal, warning);
  if (errors.length > 0) return ExitCode.badInput;
  if (request.pods.length === 0) throw new PodwrightError(ExitCode.badInput, `no pod in ${operands.join(", ")}`);
  await requireSystemd(context, places, "podwright run --detach --wait none FILE");
  await requireOwnUnit(files, join(places.units, engineService));
  await requireOwnRuntime(context);
  const replaced = await replacedPods(context, { manifests, request }, places.manifests, interrupts.first);
  requireReady(await preflight({ files, mounts, processes, layout, searchPath: searchPath(context) }));
  await install(context, manifests, places);
  await startService(context, interrupts.first);
  if (replaced.length > 0) terminal.print(`no longer enabled: ${replaced.map(shortName).join(", ")}`);
  terminal.print(enabledText(request));
  return ExitCode.done;
}

/**
 * The service uses podwright's own containerd at each boot. An engine that took over pods from another runtime would start the
 * enabled ones there, too, and the one after its end would not find them again.
 * @throws PodwrightError when pods of `run --runtime-endpoint` are there
 */
export async function requireOwnRuntime(context: MachineContext): Promise<void> {
  const { files, layout } = context;
  const used = (await findEngine(context))?.runtimeEndpoint ?? (await runtimeOfPods(files, layout));
  if (used === undefined || used === layout.containerd.endpoint) return;
  const message = `the pods of ${layout.stateDirectory} run in ${used}, enabled ones only in podwright's own containerd`;
  throw new PodwrightError(ExitCode.badInput, message, {
    remedy: "stop those pods first, or continue to run them with 'podwright run'",
  });
}

/** Absolute paths of the operands' files, by the names of their copies. */
async function manifestFiles({ files }: MachineContext, operands: readonly string[]): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  const add = (path: string): void => {
    const name = basename(path);
    const other = found.get(name);
    if (other !== undefined && other !== path) {
      throw new PodwrightError(ExitCode.badInput, `${other} and ${path} have the same name`, {
        remedy: "rename one of them: they are copied into one directory",
      });
    }
    found.set(name, path);
  };
  for (const operand of operands) {
    if (operand === "-" || /^https?:\/\//iu.test(operand)) {
      throw new PodwrightError(ExitCode.badInput, `${operand} is not a file`, {
        remedy: "save it to a file first: only files and directories can be enabled",
      });
    }
    const path = resolve(process.cwd(), operand);
    const type = await pathType({ files }, path);
    if (type === undefined) {
      throw new PodwrightError(ExitCode.badInput, `${operand} does not exist`, {
        remedy: "name a manifest or a directory",
      });
    }
    if (type === "directory") {
      for (const name of await manifestNames(files, path)) add(join(path, name));
    } else if (isManifestName(basename(path))) {
      add(path);
    } else {
      throw new PodwrightError(ExitCode.badInput, `${operand}: names of manifests must end in .yaml, .yml or .json`);
    }
  }
  if (found.size > 0) return found;
  throw new PodwrightError(ExitCode.badInput, `no manifest in ${operands.join(", ")}`);
}

/** Writes the unit and the manifests, so that all of it or nothing is changed. */
async function install(
  context: MachineContext,
  manifests: ReadonlyMap<string, string>,
  places: ServicePlaces,
): Promise<void> {
  const { files, processes, layout } = context;
  await using undo = new AsyncDisposableStack();
  for (const directory of [dirname(places.manifests), places.manifests]) {
    if ((await files.stat(directory)) !== undefined) continue;
    undo.defer(async () => void (await removeEmpty(files, directory).catch(() => {})));
  }
  await files.makeDirectory(places.manifests, 0o700);
  // Before the manifests, which a running service takes up at once.
  const restoreUnit = await writeUnit(
    context,
    join(places.units, engineService),
    engineUnit(places, layout.stateDirectory),
  );
  undo.defer(restoreUnit);
  undo.defer(await copyManifests(files, manifests, places.manifests));
  await systemctl(processes, ["enable", "--quiet", engineService]);
  undo.move();
}

async function startService(context: MachineContext, signal: AbortSignal): Promise<void> {
  const { processes } = context;
  if (await isActive(processes, engineService)) {
    await systemctl(processes, ["reload", engineService]);
    return;
  }
  // The engine of 'podwright run' is replaced by the service's, which takes over its pods. The new one is started first, and waits for
  // the lock: otherwise a client that loses its engine might start another one in between.
  const running = await findEngine(context);
  if (running !== undefined) {
    await systemctl(processes, ["start", "--no-block", engineService]);
    await untilEngineBeside(context, running.pid, signal);
    await endEngine(context);
  }
  await systemctl(processes, ["start", engineService]);
}

/** Waits for the service's process. If it does not appear, the blocking start afterwards reports why. */
async function untilEngineBeside(context: MachineContext, pid: number, signal: AbortSignal): Promise<void> {
  const { clock } = context;
  const deadline = clock.monotonic() + besideLimitMs;
  while (clock.monotonic() < deadline) {
    if ((await enginePids(context)).some((other) => other !== pid)) return;
    await clock.sleep("the service's engine", besidePollMs, signal);
  }
}

/** The label of a pod that is given as `namespace/name`. */
function shortName(key: string): string {
  const [namespace = "", name = ""] = key.split("/");
  return podLabel({ namespace, name });
}

function enabledText({ pods }: ApplyRequest): string {
  const names = pods.map(({ metadata }) =>
    podLabel({ namespace: metadata.namespace ?? "", name: metadata.name ?? "" }),
  );
  const [first = "POD"] = names;
  return [
    `enabled: ${names.join(", ")} ${names.length === 1 ? "runs" : "run"} now and after each boot`,
    `  ${ownProgram()} ps`,
    `  ${ownProgram()} why ${first}`,
    `  journalctl -u ${engineService}`,
  ].join("\n");
}
