import { basename, join, resolve } from "node:path/posix";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import type { PodRef } from "../journal/entry.ts";
import { preflight, requireReady } from "../private-runtime/preflight/preflight.ts";
import type { ApplyRequest } from "../server/local-api.ts";
import { podLabel } from "../server/pod-selector.ts";
import { maxManifestBytes } from "../sources/decode.ts";
import { isManifestName, manifestNames } from "../sources/load.ts";
import { objectKey } from "../sources/run-objects.ts";
import { findEngine, searchPath } from "./engine-process.ts";
import { EngineSession } from "./engine-session.ts";
import { printError, printWarning } from "./error-output.ts";
import { plural } from "./format.ts";
import { Interrupts } from "./interrupts.ts";
import type { MachineContext } from "./machine-context.ts";
import { loadInput } from "./manifest-input.ts";
import { engineService, engineUnit, type ServicePlaces } from "./service-units.ts";
import { isActive, removeUnit, requireSystemd, systemctl, writeUnit } from "./services.ts";
import { requestStop, waitUntilGone } from "./stopping.ts";

/**
 * `podwright enable`: the manifests run from now on and after each boot, as a service of systemd. They are copied; nothing is
 * changed when one of them is invalid, or the machine can't run pods.
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
  requireReady(await preflight({ files, mounts, processes, layout, searchPath: searchPath(context) }));
  await files.makeDirectory(places.manifests, 0o700);
  for (const [name, path] of manifests) {
    const to = join(places.manifests, name);
    // There may be Secrets in it.
    if (to !== path) await files.writeAtomic(to, await files.read(path, maxManifestBytes), 0o600);
  }
  await writeUnit(context, join(places.units, engineService), engineUnit(places, layout.stateDirectory));
  await startService(context);
  terminal.print(enabledText(request));
  return ExitCode.done;
}

/** The files that the operands name, absolute, by the names that they get. */
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
        remedy: "save it to a file first: what is enabled must be there at boot",
      });
    }
    const path = resolve(process.cwd(), operand);
    if ((await typeOf({ files }, path)) === "directory") {
      for (const name of await manifestNames(files, path)) add(join(path, name));
    } else if (isManifestName(basename(path))) {
      add(path);
    } else {
      throw new PodwrightError(ExitCode.badInput, `${operand}: the name of a manifest ends in .yaml, .yml or .json`);
    }
  }
  if (found.size > 0) return found;
  throw new PodwrightError(ExitCode.badInput, `no manifest in ${operands.join(", ")}`);
}

async function typeOf({ files }: Pick<MachineContext, "files">, path: string): Promise<string | undefined> {
  try {
    return (await files.stat(await files.realPath(path)))?.type;
  } catch {
    return undefined;
  }
}

async function startService(context: MachineContext): Promise<void> {
  const { processes, engine } = context;
  if (await isActive(processes, engineService)) {
    await systemctl(processes, ["enable", "--quiet", engineService]);
    await systemctl(processes, ["reload", engineService]);
    return;
  }
  // That of 'podwright run' makes room; its pods keep running, and the service takes them over.
  if ((await findEngine(context)) !== undefined) await engine.shutdown("keep");
  await systemctl(processes, ["enable", "--quiet", "--now", engineService]);
}

function enabledText({ pods }: ApplyRequest): string {
  const names = pods.map(({ metadata }) =>
    podLabel({ namespace: metadata.namespace ?? "", name: metadata.name ?? "" }),
  );
  const [first = "POD"] = names;
  return [
    `enabled: ${names.join(", ")} ${names.length === 1 ? "runs" : "run"} now and after each boot`,
    "  podwright ps",
    `  podwright why ${first}`,
    `  journalctl -u ${engineService}`,
  ].join("\n");
}

/**
 * `podwright disable`: the manifests of these names, without names all, run no longer, now and after each boot. With the last
 * one the service goes.
 */
export async function disableCommand(
  context: MachineContext,
  operands: readonly string[],
  places: ServicePlaces,
): Promise<ExitCode> {
  const { terminal, files } = context;
  using interrupts = new Interrupts(process, terminal.closed);
  const present = await manifestNames(files, places.manifests);
  const names = operands.length === 0 ? present : operands.map((operand) => basename(operand));
  const unknown = names.find((name) => !present.includes(name));
  if (unknown !== undefined || names.length === 0) {
    throw new PodwrightError(
      ExitCode.badInput,
      unknown === undefined ? "nothing is enabled" : `${unknown} is not enabled`,
      {
        remedy: present.length === 0 ? `${places.manifests} has no manifests` : `enabled: ${present.join(", ")}`,
      },
    );
  }
  const paths = names.map((name) => join(places.manifests, name));
  const { request } = await loadInput(context, paths, interrupts.first);
  for (const path of paths) await files.remove(path);
  const isLast = names.length === present.length;
  await stopPods(context, request, interrupts.first);
  if (isLast) await removeUnit(context, places, engineService);
  const others = isLast ? "; no manifest is left, and the service is removed" : "";
  terminal.print(`disabled: ${plural(names.length, "manifest")}${others}`);
  return ExitCode.done;
}

async function stopPods(context: MachineContext, request: ApplyRequest, signal: AbortSignal): Promise<void> {
  if ((await findEngine(context)) === undefined) return;
  const session = new EngineSession(context, {}, signal);
  const wanted = new Set(request.pods.map(({ metadata }) => objectKey(metadata)));
  const views = await session.call((engine) => engine.pods());
  const pods: readonly PodRef[] = views.filter(({ namespace, name }) => wanted.has(objectKey({ namespace, name })));
  await requestStop(session, pods, undefined);
  await waitUntilGone(context, session, pods, { quiet: false, signal });
}
