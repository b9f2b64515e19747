import { errorMessage } from "../base/errors.ts";
import type { Cgroups } from "../ports/cgroups.ts";
import type { Mounts } from "../ports/mounts.ts";
import type { PrivateRuntimeDeps } from "./containerd.ts";
import { endContainerd, endShims, findContainerd, findShims } from "./containerd-process.ts";
import { openLoopback, removeStaleRules } from "./firewall.ts";
import type { RuntimeLayout } from "./layout.ts";
import type { Programs } from "./programs.ts";
import { releaseSubnet, removeBridge } from "./pod-network.ts";

export interface StopDeps extends PrivateRuntimeDeps {
  readonly mounts: Mounts;
  readonly cgroups: Cgroups;
}

/** How stopping the private runtime ended. */
export type StopOutcome =
  | {
      readonly stopped: true;
      /** What could not be taken away, each with the reason; the next start copes with it. */
      readonly leftovers: readonly string[];
    }
  | { readonly stopped: false; /** Sandboxes that are still there. */ readonly sandboxes: number };

const LIST_TIMEOUT_MS = 10_000;

/**
 * Stops the layout's containerd when no sandbox is left, and takes away what it leaves on the machine: mounts below its
 * own directories, sockets, the bridge, the pods' parent cgroup. Images and configuration stay, and so do the empty
 * iptables chains of CNI's portmap and firewall plugins, which all CNI networks of the machine share. Not running is no
 * error: leftovers of a crash are taken away all the same. The caller owns the runtime.
 */
export async function stopPrivateRuntime(
  deps: StopDeps,
  layout: RuntimeLayout,
  { busybox, iptables }: Pick<Programs, "busybox" | "iptables">,
  signal?: AbortSignal,
): Promise<StopOutcome> {
  const sandboxes = await countSandboxes(deps, layout, signal);
  if (sandboxes > 0) return { stopped: false, sandboxes };
  await endContainerd(deps, layout);
  await endShims(deps.processes, layout);

  const leftovers: string[] = [];
  const attempt = async (what: string, work: () => Promise<void>): Promise<void> => {
    try {
      await work();
    } catch (error) {
      leftovers.push(`${what}: ${errorMessage(error)}`);
    }
  };
  const ownDirectories = [`${layout.runDirectory}/containerd`, layout.containerd.root];
  // Innermost first.
  for (const { target } of (await deps.mounts.list()).toReversed()) {
    if (!ownDirectories.some((directory) => target.startsWith(`${directory}/`))) continue;
    await attempt(`mount ${target}`, () => deps.mounts.unmount(target));
  }
  await attempt("sockets and run-time state", async () => {
    await deps.files.removeTree(`${layout.runDirectory}/containerd`);
    // The engine's own socket and lock may still be there; and the default instance's one holds the others'.
    const isEmpty = (await deps.files.list(layout.runDirectory)).length === 0;
    if (layout.instance !== undefined && isEmpty) await deps.files.remove(layout.runDirectory);
  });
  await attempt(`bridge ${layout.cni.bridge}`, async () => {
    if (!(await removeBridge(deps, layout, busybox))) throw new Error("interfaces are still connected to it");
  });
  await attempt("firewall rules", async () => {
    const firewall = { processes: deps.processes, iptables, network: layout.cni.networkName };
    await removeStaleRules(firewall, () => true);
    await openLoopback(firewall, layout.cni.bridge);
  });
  await attempt("subnet claim", () => releaseSubnet(deps, layout));
  await attempt(`cgroup ${layout.cgroupRoot}`, () => deps.cgroups.remove(layout.cgroupRoot));
  return { stopped: true, leftovers };
}

/**
 * Sandboxes by containerd's own account; while it is away or stuck by its shims, which hold them. One that can't answer
 * but has no shim has no running pod.
 */
async function countSandboxes(deps: StopDeps, layout: RuntimeLayout, signal: AbortSignal | undefined): Promise<number> {
  if ((await findContainerd(deps.processes, layout)) !== undefined) {
    using cri = deps.connect(layout.containerd.endpoint);
    try {
      const options = { timeoutMs: LIST_TIMEOUT_MS, ...(signal && { signal }) };
      return (await cri.runtime.listPodSandbox({}, options)).items.length;
    } catch {
      signal?.throwIfAborted();
    }
  }
  return (await findShims(deps.processes, layout)).length;
}
