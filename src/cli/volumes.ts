import { resolve } from "node:path/posix";
import { stringify } from "yaml";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import { DeadlineError, withDeadline } from "../base/deadline.ts";
import { printable } from "../journal/text.ts";
import { openStatsFiles } from "../linux/files/stats-files.ts";
import { FileError } from "../ports/files.ts";
import type { StatsFiles } from "../ports/stats-files.ts";
import type { ClaimRemoval, ClaimView, FreeVolumeView } from "../server/local-api.ts";
import { podLabel } from "../server/pod-selector.ts";
import { agrees } from "./agree.ts";
import { claimLabel } from "./claim-label.ts";
import { usedError, usedWithoutEngine } from "./claim-use.ts";
import { copyOut } from "./copy-out.ts";
import { EngineGone } from "./engine-client.ts";
import { printWarning } from "./error-output.ts";
import { formatTable } from "./format.ts";
import { formatBytes } from "./gc.ts";
import { Interrupts } from "./interrupts.ts";
import { keptFreeVolumes, openKeptClaims, removeKeptClaim, stoppingPods } from "./kept-claims.ts";
import type { MachineContext } from "./machine-context.ts";
import { ownCommand } from "./own-command.ts";
import type { Painter } from "./terminal.ts";

export interface VolumesOptions {
  readonly force?: true;
  readonly json?: true;
}

/** A claim with the size of its data; undefined: unknown, or too much to count in time. */
type MeasuredClaim = Omit<ClaimView, "objects"> & { readonly usedBytes: number | undefined };

/**
 * `podwright volumes [ACTION] [CLAIM …]`: the claims of `podwright run` and their data, with or without an engine.
 * @param agree asks a person
 */
export async function volumesCommand(
  context: MachineContext,
  [action = "ls", ...operands]: readonly string[],
  options: VolumesOptions,
  agree = agrees,
): Promise<ExitCode> {
  const [wanted, destination, ...more] = operands;
  switch (action) {
    case "ls":
      if (wanted !== undefined) throw tooMany("ls", "");
      return await list(context, options);
    case "inspect":
      if (destination !== undefined) throw tooMany("inspect", " CLAIM");
      return inspect(context, await claimNamed(context, wanted), options);
    case "rm":
      if (operands.length === 0) throw missing(context, "rm CLAIM …");
      return await removeAll(context, await claimsNamed(context, operands), options, agree);
    default:
      if (destination === undefined) throw missing(context, "copy-out CLAIM DESTINATION");
      if (more.length > 0) throw tooMany("copy-out", " CLAIM DESTINATION");
      return await copy(context, await claimNamed(context, wanted), destination, options);
  }
}

function missing({ layout }: Pick<MachineContext, "layout">, usage: string): PodwrightError {
  return new PodwrightError(ExitCode.badInput, `missing argument: 'podwright volumes ${usage}'`, {
    remedy: `'${ownCommand(layout.stateDirectory, "volumes")}' lists the claims`,
  });
}

function tooMany(action: string, operands: string): PodwrightError {
  return new PodwrightError(ExitCode.badInput, `too many operands for 'podwright volumes ${action}${operands}'`);
}

/** Claims outlive the engine, which ends with its last pod. */
async function claimsOf(context: MachineContext): Promise<readonly ClaimView[]> {
  return await context.engine.claims().catch(async (error: unknown) => {
    if (!(error instanceof EngineGone)) throw error;
    const kept = await openKeptClaims(context);
    const again = ownCommand(context.layout.stateDirectory, "run");
    for (const problem of kept.unreadable) {
      printWarning(context.terminal, new Error(`${problem}; give its document to '${again}' again`));
    }
    return kept.views();
  });
}

/** @param wanted name or namespace/name */
async function claimNamed(context: MachineContext, wanted: string | undefined): Promise<ClaimView> {
  if (wanted === undefined) throw missing(context, "inspect CLAIM");
  return claimIn(await claimsOf(context), wanted, context);
}

/** Each claim once. @throws PodwrightError if one does not exist */
async function claimsNamed(context: MachineContext, wanted: readonly string[]): Promise<readonly ClaimView[]> {
  const claims = await claimsOf(context);
  return [...new Set(wanted.map((each) => claimIn(claims, each, context)))];
}

function claimIn(claims: readonly ClaimView[], wanted: string, context: MachineContext): ClaimView {
  const found = claims.filter(({ namespace, name }) => [name, `${namespace}/${name}`].includes(wanted));
  const [first, second] = found;
  if (first === undefined) {
    const names = claims.map(claimLabel).join(", ");
    throw new PodwrightError(
      ExitCode.badInput,
      `claim ${JSON.stringify(wanted)} not found in ${context.layout.stateDirectory}`,
      {
        remedy:
          names === ""
            ? `run a manifest with a PersistentVolumeClaim first: '${ownCommand(context.layout.stateDirectory, "run")} FILE'`
            : `existing claims: ${names}`,
      },
    );
  }
  if (second === undefined) return first;
  throw new PodwrightError(ExitCode.badInput, `${wanted} matches several claims: ${found.map(claimLabel).join(", ")}`, {
    remedy: "add the namespace",
  });
}

async function list(context: MachineContext, { json }: VolumesOptions): Promise<ExitCode> {
  const { terminal } = context;
  const files = await openStatsFiles(context.clock);
  const claims: MeasuredClaim[] = [];
  for (const { objects: _objects, ...claim } of await claimsOf(context)) {
    claims.push({ ...claim, usedBytes: await usedBytes(context, files, claim.path) });
  }
  const volumes = await freeVolumes(context);
  if (json === true) terminal.print(JSON.stringify({ claims, volumes }, undefined, 2));
  else if (claims.length + volumes.length === 0) terminal.warn("no claims");
  else {
    const parts = [claimLines(claims, terminal.paint), freeVolumeLines(volumes, terminal.paint)];
    terminal.print(parts.flatMap((lines) => (lines.length > 0 ? [lines.join("\n")] : [])).join("\n\n"));
  }
  return ExitCode.done;
}

async function freeVolumes(context: MachineContext): Promise<readonly FreeVolumeView[]> {
  return await context.engine.freeVolumes().catch((error: unknown) => {
    if (error instanceof EngineGone) return keptFreeVolumes(context);
    throw error;
  });
}

const countMs = 10_000;

async function usedBytes(
  { clock, files }: MachineContext,
  stats: Pick<StatsFiles, "treeUsage">,
  path: string | undefined,
): Promise<number | undefined> {
  if (path === undefined) return undefined;
  try {
    const count = async (signal: AbortSignal): ReturnType<StatsFiles["treeUsage"]> => {
      // The path may be a link or a device; a size of it says nothing about the data.
      const real = await files.realPath(path);
      return (await files.stat(real))?.type === "directory" ? await stats.treeUsage(real, signal) : undefined;
    };
    return (await withDeadline(clock, `size of ${path}`, countMs, undefined, count))?.bytes;
  } catch (error) {
    if (error instanceof DeadlineError || error instanceof FileError) return undefined;
    throw error;
  }
}

/** One line a claim, its problem below it. */
function claimLines(claims: readonly MeasuredClaim[], paint: Painter): string[] {
  if (claims.length === 0) return [];
  const rows = claims.map(({ namespace, name, phase, requested, usedBytes: used, usedBy, where }) => [
    printable(namespace),
    printable(name),
    printable(phase),
    printable(requested),
    used === undefined ? "-" : formatBytes(used),
    usedBy.length === 0 ? "-" : printable(usedBy.map(podLabel).join(", ")),
    printable(where ?? "-"),
  ]);
  const table = formatTable([["NAMESPACE", "NAME", "STATUS", "REQUESTED", "USED", "PODS", "WHERE"], ...rows], paint);
  const notes = claims
    .filter(({ message }) => message !== "")
    .map((claim) => paint.caution(`${printable(claimLabel(claim))} is not bound: ${printable(claim.message)}`));
  return [...table, ...notes];
}

/** Volumes without a claim, with the properties that matter for binding. */
function freeVolumeLines(volumes: readonly FreeVolumeView[], paint: Painter): string[] {
  if (volumes.length === 0) return [];
  const rows = volumes.map(({ name, capacity, accessModes, storageClass, keptFor, where }) =>
    [name, capacity, accessModes.join(", "), storageClass || "-", keptFor ?? "-", where].map(printable),
  );
  return formatTable([["FREE VOLUME", "CAPACITY", "ACCESS MODES", "CLASS", "KEPT FOR", "WHERE"], ...rows], paint);
}

function inspect({ terminal }: MachineContext, claim: ClaimView, { json }: VolumesOptions): ExitCode {
  const { objects, ...view } = claim;
  if (json === true) terminal.print(JSON.stringify({ ...view, objects }, undefined, 2));
  else terminal.print(objects.map((object) => stringify(object, { version: "1.1" }).trimEnd()).join("\n---\n"));
  return ExitCode.done;
}

/** Removes nothing unless all of them can be removed. */
async function removeAll(
  context: MachineContext,
  claims: readonly ClaimView[],
  { force, json }: VolumesOptions,
  agree: typeof agrees,
): Promise<ExitCode> {
  const { terminal } = context;
  await refuseUsed(context, claims);
  if (force !== true) for (const claim of claims) await ask(context, claim, agree);
  const removed: ClaimRemoval[] = [];
  try {
    for (const claim of claims) {
      const removal = await removeOne(context, claim);
      removed.push(removal);
      const left = removal.left === undefined ? "" : `; its data stays in ${printable(removal.left)}`;
      if (json !== true) terminal.print(`removed claim ${claimLabel(claim)}${left}`);
    }
  } finally {
    if (json === true) terminal.print(JSON.stringify({ removed }, undefined, 2));
  }
  return ExitCode.done;
}

/** @throws PodwrightError if one is in use */
async function refuseUsed(context: MachineContext, claims: readonly ClaimView[]): Promise<void> {
  const used = claims.find(({ usedBy }) => usedBy.length > 0);
  if (used === undefined) return;
  const { stateDirectory } = context.layout;
  // What can be done about it depends on whether an engine runs.
  const stopping = await context.engine.claims().then(
    () => undefined,
    (error: unknown) => {
      if (error instanceof EngineGone) return stoppingPods(context);
      throw error;
    },
  );
  const error =
    stopping === undefined ? usedError(stateDirectory, used) : usedWithoutEngine(stateDirectory, used, stopping);
  if (error !== undefined) throw error;
}

async function ask({ terminal }: MachineContext, claim: ClaimView, agree: typeof agrees): Promise<void> {
  const what = claim.isOwn
    ? `claim ${claimLabel(claim)} and everything in ${claim.path}`
    : `claim ${claimLabel(claim)}; its data stays`;
  const answer = await agree(terminal, `Remove ${what}?`);
  if (answer === true) return;
  throw new PodwrightError(ExitCode.failed, `claim ${claimLabel(claim)} is not removed`, {
    ...(answer === undefined && { remedy: "add --force to remove it without a question" }),
  });
}

async function removeOne(context: MachineContext, { namespace, name }: ClaimView): Promise<ClaimRemoval> {
  return await context.engine.removeClaim(namespace, name).catch((error: unknown): Promise<ClaimRemoval> => {
    if (error instanceof EngineGone) return removeKeptClaim(context, namespace, name);
    throw error;
  });
}

async function copy(
  context: MachineContext,
  claim: ClaimView,
  destination: string,
  { json }: VolumesOptions,
): Promise<ExitCode> {
  const { terminal } = context;
  const { namespace, name, path, where, usedBy } = claim;
  if (path === undefined) {
    const why = where === undefined ? "has no data: it is not bound" : `is ${printable(where)}`;
    throw new PodwrightError(ExitCode.failed, `claim ${claimLabel(claim)} ${why}; only directories can be copied`, {
      ...(where !== undefined && { remedy: "copy the data in a pod that has the claim" }),
    });
  }
  using interrupts = new Interrupts(process, terminal.closed);
  const to = resolve(process.cwd(), destination);
  await copyOut(context, path, to, interrupts.first, claim.isOwn);
  if (json === true) terminal.print(JSON.stringify({ namespace, name, copiedTo: to, usedBy }, undefined, 2));
  else terminal.print(`copied claim ${claimLabel(claim)} to ${to}`);
  const users = usedBy.map(podLabel).join(", ");
  if (users !== "") terminal.warn(`${users} may have written meanwhile: stop the pods for a consistent copy`);
  return ExitCode.done;
}
