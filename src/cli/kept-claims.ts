import { hostname } from "node:os";
import type { Pod } from "../api/pod.ts";
import { RunClaims } from "../claims/run-claims.ts";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import { podUid } from "../base/ids.ts";
import { systemLocks } from "../linux/files/lock.ts";
import { createLogger } from "../linux/processes/log-sink.ts";
import { systemRandom } from "../linux/processes/random.ts";
import type { ClaimRemoval, ClaimView } from "../server/local-api.ts";
import { RunStore } from "../sources/run-store.ts";
import type { CommandContext } from "./context.ts";

type Context = Pick<CommandContext, "clock" | "files" | "layout">;

/** The claims of a state directory that no engine uses now. Nothing is written when nothing is kept there. */
export async function openKeptClaims(context: Context): Promise<RunClaims> {
  const { clock, files, layout } = context;
  const pods = await keptPods(context);
  const nodeLabels = { "kubernetes.io/hostname": hostname(), "kubernetes.io/os": "linux" };
  const store = new RunStore(files, layout.claims);
  const log = createLogger({ level: "warn" });
  const claims = new RunClaims(
    { clock, files, log, store, random: systemRandom, journal: { record: () => 0 }, pods: () => pods },
    { directories: layout.volumes, nodeLabels },
  );
  if ((await files.stat(layout.claims)) === undefined) return claims;
  const [problem] = await claims.load();
  if (problem === undefined) return claims;
  throw new PodwrightError(ExitCode.failed, problem, { remedy: "correct or remove that file" });
}

export async function keptClaims(context: Context): Promise<readonly ClaimView[]> {
  return (await openKeptClaims(context)).views();
}

/** Removes a claim while no engine can use it. */
export async function removeKeptClaim(context: Context, namespace: string, name: string): Promise<ClaimRemoval> {
  const { files, layout } = context;
  await files.makeDirectory(layout.runDirectory, 0o755);
  using lock = await systemLocks.tryOwnLock(layout.lockFile);
  if (lock === undefined) {
    throw new PodwrightError(ExitCode.failed, `an engine is starting or ending for ${layout.stateDirectory}`, {
      remedy: "try again",
    });
  }
  const message = `a user removes claim ${namespace}/${name}`;
  return await (await openKeptClaims(context)).remove(namespace, name, { code: "ClaimRemovalRequested", message });
}

/** Pods that an engine would run: they may still be running. */
async function keptPods({ files, layout }: Context): Promise<Pod[]> {
  if ((await files.stat(layout.manifests)) === undefined) return [];
  const { objects } = await new RunStore(files, layout.manifests).load();
  return objects.flatMap((object) => {
    if (object.kind !== "Pod") return [];
    const { metadata, spec } = object.manifest;
    const { name = "", namespace, uid = "" } = metadata;
    return [{ metadata: { ...metadata, name, namespace: namespace || "default", uid: podUid(uid) }, spec }];
  });
}
