import { ExitCode, PodwrightError } from "../base/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Files } from "../ports/files.ts";
import type { Locks } from "../ports/locks.ts";
import type { Network } from "../ports/network.ts";
import type { Processes } from "../ports/processes.ts";
import { LOCK_DIRECTORY, SUBNET_CLAIM_DIRECTORY } from "./layout.ts";
import { ownLockWithin } from "./own-lock.ts";
import type { RuntimeLayout } from "./layout.ts";
import { chooseSubnet, overlap, parseNetwork, parseRoutes } from "./subnet.ts";
import type { Ipv4Network } from "./subnet.ts";

export interface PodNetworkDeps {
  readonly clock: Clock;
  readonly files: Files;
  readonly locks: Locks;
  readonly network: Pick<Network, "addresses">;
}

const LOCK_LIMIT_MS = 10_000;
const MAX_FILE_BYTES = 1024 * 1024;

/**
 * The pods' subnet: the one that the state directory remembers, as long as nothing else uses it, otherwise a free one,
 * which is remembered. A claim under /run keeps two podwrights that start at once from choosing the same.
 * @returns e.g. `10.88.7.0/24`
 */
export async function claimSubnet(deps: PodNetworkDeps, layout: RuntimeLayout, signal?: AbortSignal): Promise<string> {
  const { files } = deps;
  await files.makeDirectory(SUBNET_CLAIM_DIRECTORY, 0o755);
  using _lock = await waitForLock(deps, `${LOCK_DIRECTORY}/subnets`, signal);
  const taken = await networksInUse(deps, layout);
  const subnet = (await rememberedSubnet(files, layout, taken)) ?? chooseSubnet(taken, layout.instance);
  if (subnet === undefined) {
    throw new PodwrightError(ExitCode.environment, "no subnet is free for pods in 10.88.0.0/15 and 172.30.0.0/16", {
      remedy: `write an unused one, such as 192.168.77.0/24, to ${layout.cni.subnetFile}`,
    });
  }
  await files.makeDirectory(parentOf(layout.cni.subnetFile), 0o755);
  await files.writeAtomic(layout.cni.subnetFile, `${subnet}\n`, 0o644);
  await files.writeAtomic(claimFile(layout), `${subnet} ${layout.stateDirectory}\n`, 0o644);
  return subnet;
}

/** Gives the claim back; the state directory still remembers the subnet. */
export async function releaseSubnet({ files }: Pick<PodNetworkDeps, "files">, layout: RuntimeLayout): Promise<void> {
  await files.remove(claimFile(layout));
}

/**
 * Removes the pods' bridge, unless an interface is still connected to it. busybox brings the means; iproute2 need not
 * be installed.
 * @returns whether the bridge is gone
 */
export async function removeBridge(
  deps: { readonly files: Files; readonly processes: Processes },
  layout: RuntimeLayout,
  busybox: string,
): Promise<boolean> {
  const { bridge } = layout.cni;
  const device = `/sys/class/net/${bridge}`;
  if ((await deps.files.stat(device)) === undefined) return true;
  if ((await deps.files.list(`${device}/brif`)).length > 0) return false;
  await deps.processes.run(busybox, ["ip", "link", "set", "dev", bridge, "down"], { timeoutMs: 10_000 });
  await deps.processes.run(busybox, ["ip", "link", "delete", "dev", bridge], { timeoutMs: 10_000 });
  return (await deps.files.stat(device)) === undefined;
}

async function rememberedSubnet(
  files: Files,
  layout: RuntimeLayout,
  taken: readonly Ipv4Network[],
): Promise<string | undefined> {
  const text = await textOf(files, layout.cni.subnetFile);
  const network = parseNetwork(text);
  if (network === undefined) return undefined;
  // While the bridge is there pods may be using it: no other subnet can be given to it then.
  const isInUse = (await files.stat(`/sys/class/net/${layout.cni.bridge}`)) !== undefined;
  return isInUse || !taken.some((other) => overlap(other, network)) ? text.trim() : undefined;
}

/** What routes, addresses and other podwrights use. */
async function networksInUse({ files, network }: PodNetworkDeps, layout: RuntimeLayout): Promise<Ipv4Network[]> {
  const routes = parseRoutes(await textOf(files, "/proc/net/route"), isLittleEndian())
    .filter((route) => route.interface !== layout.cni.bridge)
    .map((route) => route.network);
  const bridged = parseNetwork(await textOf(files, layout.cni.subnetFile));
  const addresses = network
    .addresses()
    .flatMap((address) => parseNetwork(address) ?? [])
    // The gateway address of the own bridge.
    .filter((address) => bridged === undefined || !overlap(address, bridged));
  return [...routes, ...addresses, ...(await otherClaims(files, layout))];
}

/** Claims of other state directories; those whose directory is gone count no longer. */
async function otherClaims(files: Files, layout: RuntimeLayout): Promise<Ipv4Network[]> {
  const claims: Ipv4Network[] = [];
  for (const { name } of await files.list(SUBNET_CLAIM_DIRECTORY)) {
    const path = `${SUBNET_CLAIM_DIRECTORY}/${name}`;
    if (path === claimFile(layout)) continue;
    const [, subnet, stateDirectory] = /^(\S+) (\/.*)\n/.exec(await textOf(files, path)) ?? [];
    const network = subnet === undefined ? undefined : parseNetwork(subnet);
    if (network === undefined || stateDirectory === undefined) continue;
    if ((await files.stat(stateDirectory)) === undefined) await files.remove(path);
    else claims.push(network);
  }
  return claims;
}

async function waitForLock(
  { clock, files, locks }: PodNetworkDeps,
  path: string,
  signal?: AbortSignal,
): Promise<Disposable> {
  await files.makeDirectory(LOCK_DIRECTORY, 0o755);
  const wait = { what: "lock of the pod subnets", limitMs: LOCK_LIMIT_MS };
  const lock = await ownLockWithin({ clock, locks }, path, wait, signal);
  if (lock !== undefined) return lock;
  const holder = await locks.holder(path);
  throw new PodwrightError(
    ExitCode.failed,
    `another podwright${holder === undefined ? "" : ` (pid ${holder})`} holds ${path}`,
    {
      remedy: "stop it, or wait for it",
    },
  );
}

function claimFile(layout: RuntimeLayout): string {
  return `${SUBNET_CLAIM_DIRECTORY}/${layout.instance ?? "default"}`;
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/"));
}

/** A file's text; empty when it can't be read. */
async function textOf(files: Files, path: string): Promise<string> {
  try {
    return Buffer.from(await files.read(path, MAX_FILE_BYTES)).toString("utf8");
  } catch {
    return "";
  }
}

/** The byte order in which the kernel prints addresses to /proc. */
function isLittleEndian(): boolean {
  return new Uint8Array(Uint16Array.of(1).buffer)[0] === 1;
}
