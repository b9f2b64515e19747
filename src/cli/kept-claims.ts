import { hostname } from "node:os";
import type { Pod } from "../api/pod.ts";
import { RunClaims } from "../claims/run-claims.ts";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import { podUid } from "../base/ids.ts";
import { systemLocks } from "../linux/files/lock.ts";
import { createLogger } from "../linux/processes/log-sink.ts";
import type { PodRef } from "../journal/entry.ts";
import { systemRandom } from "../linux/processes/random.ts";
import { version } from "../base/version.ts";
import { ownLockWithin } from "../private-runtime/own-lock.ts";
import { requireStateFormat } from "../private-runtime/state-format.ts";
import { Annotation } from "../runtime/config/labels.ts";
import { keptSpec } from "../runtime/layout/kept-spec.ts";
import type { ClaimRemoval, FreeVolumeView } from "../server/local-api.ts";
import { RunStore } from "../sources/run-store.ts";
import { usedWithoutEngine } from "./claim-use.ts";
import type { MachineContext } from "./machine-context.ts";

const lockLimitMs = 10_000;

type Context = Pick<MachineContext, "clock" | "files" | "layout" | "mounts">;

/** The claims of a state directory that no engine uses now. Nothing is written when nothing is kept there. */
export async function openKeptClaims(context: Context): Promise<RunClaims> {
  return await openClaims(context, (await keptPods(context)).pods);
}

async function openClaims(context: Context, pods: readonly Pod[]): Promise<RunClaims> {
  const { clock, files, layout, mounts } = context;
  const nodeLabels = { "kubernetes.io/hostname": hostname(), "kubernetes.io/os": "linux" };
  const store = new RunStore(files, layout.claims);
  const log = createLogger({ level: "warn" });
  const claims = new RunClaims(
    { clock, files, mounts, log, store, random: systemRandom, journal: { record: () => 0 }, pods: () => pods },
    { directories: layout.volumes, podsDirectory: `${layout.kubeletRoot}/pods`, nodeLabels },
  );
  await requireStateFormat(files, layout.stateDirectory, version);
  if ((await files.stat(layout.claims)) !== undefined) await claims.load();
  return claims;
}

export async function keptFreeVolumes(context: Context): Promise<readonly FreeVolumeView[]> {
  return (await openKeptClaims(context)).freeVolumes();
}

/** Removes a claim while no engine can use it. */
export async function removeKeptClaim(context: Context, namespace: string, name: string): Promise<ClaimRemoval> {
  const { files, layout } = context;
  await files.makeDirectory(layout.runDirectory, 0o755);
  using _lock = await ownLock(context);
  const { pods, problems, stopping } = await keptPods(context);
  const [unreadable] = problems;
  if (unreadable !== undefined) {
    throw new PodwrightError(ExitCode.failed, `a pod of an unreadable manifest may use the claim: ${unreadable}`, {
      remedy: "correct or remove that file",
    });
  }
  const message = `a user requested the removal of claim ${namespace}/${name}`;
  const claims = await openClaims(context, pods);
  const view = claims.views().find((each) => each.namespace === namespace && each.name === name);
  const used = view && usedWithoutEngine(layout.stateDirectory, view, stopping);
  if (used !== undefined) throw used;
  return await claims.remove(namespace, name, { code: "ClaimRemovalRequested", message });
}

/** An engine that has no pods any more takes a moment to end. */
async function ownLock({ clock, layout }: Context): Promise<Disposable> {
  const wait = { what: "an engine to start or to end", limitMs: lockLimitMs };
  const lock = await ownLockWithin({ clock, locks: systemLocks }, layout.lockFile, wait);
  if (lock !== undefined) return lock;
  throw new PodwrightError(ExitCode.failed, `an engine is starting or stopping for ${layout.stateDirectory}`, {
    remedy: "try again",
  });
}

/** Pods that are being stopped, or were when their engine ended. */
export async function stoppingPods(context: Context): Promise<readonly PodRef[]> {
  return (await keptPods(context)).stopping;
}

interface KeptPods {
  /** Those that an engine would run, and those that it would have to stop; all may still be running. */
  readonly pods: readonly Pod[];
  /** The latter: their manifests were removed when their stop was requested. None if a manifest cannot be read. */
  readonly stopping: readonly PodRef[];
  /** Manifests that cannot be read. */
  readonly problems: readonly string[];
}

async function keptPods(context: Context): Promise<KeptPods> {
  // First, because a new pod has a manifest before it has a directory.
  const present = await presentPods(context);
  const { pods: wanted, problems } = await wantedPods(context);
  const uids = new Set<string>(wanted.map(({ metadata }) => metadata.uid));
  const others = present.filter(({ metadata }) => !uids.has(metadata.uid));
  const ofRun = others.filter(({ metadata }) => metadata.annotations?.[Annotation.configSource] === "run");
  const refs = ofRun.map(({ metadata: { namespace, name, uid } }) => ({ namespace, name, uid }));
  // The manifest that cannot be read may be one of theirs.
  const stopping = problems.length === 0 ? refs : [];
  return { pods: [...wanted, ...others], stopping, problems };
}

/** Pods with a directory, which an engine makes before it starts one, and removes last. */
async function presentPods({ files, layout }: Context): Promise<readonly Pod[]> {
  const node = { rootDirectory: layout.kubeletRoot };
  const directories = await files.list(`${layout.kubeletRoot}/pods`);
  const pods = await Promise.all(directories.map(({ name }) => keptSpec(files, node, podUid(name))));
  return pods.filter((pod) => pod !== undefined);
}

async function wantedPods({ files, layout }: Context): Promise<Omit<KeptPods, "stopping">> {
  if ((await files.stat(layout.manifests)) === undefined) return { pods: [], problems: [] };
  const { objects, problems } = await new RunStore(files, layout.manifests).load();
  const pods = objects.flatMap((object): Pod[] => {
    if (object.kind !== "Pod") return [];
    const { metadata, spec } = object.manifest;
    const { name = "", namespace, uid = "" } = metadata;
    return [{ metadata: { ...metadata, name, namespace: namespace || "default", uid: podUid(uid) }, spec }];
  });
  return { pods, problems: problems.map(({ message }) => message) };
}
