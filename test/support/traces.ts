import { readdir, readFile, readlink, rm } from "node:fs/promises";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { systemMounts } from "../../src/linux/files/mounts.ts";
import { systemHashing } from "../../src/linux/files/hashing.ts";
import { systemProcesses } from "../../src/linux/processes/processes.ts";
import { type RuntimeLayout, SUBNET_CLAIM_DIRECTORY } from "../../src/private-runtime/layout.ts";
import { rootRegistration } from "../../src/private-runtime/node-roots.ts";
import { runtimeLockPath } from "../../src/private-runtime/ownership.ts";
import { cgroupPaths } from "./cgroup-driver.ts";
import { machine } from "./machine.ts";
import { patience } from "./patience.ts";

const podLogs = "/var/log/pods";
const logLinks = "/var/log/containers";

/** Processes of a state directory: by their arguments, or in its pods' cgroup. */
export async function processesOf(layout: RuntimeLayout): Promise<{ pid: number; command: string }[]> {
  const inPods = new Set(await podProcesses(layout));
  const marks = new Set([layout.stateDirectory, layout.containerd.socket, layout.containerd.config]);
  return (await systemProcesses.list())
    .filter(({ pid, arguments: words }) => inPods.has(pid) || words.some((word) => marks.has(word)))
    .filter(({ pid }) => pid !== process.pid)
    .map(({ pid, arguments: words }) => ({ pid, command: words.join(" ") }));
}

async function podProcesses(layout: RuntimeLayout): Promise<number[]> {
  const found = await cgroupsOf(layout);
  return (await Promise.all(found.map((path) => machine.cgroups.pids(path)))).flat();
}

/** The pods' parent cgroup, if it exists. */
export async function cgroupsOf(layout: RuntimeLayout): Promise<string[]> {
  const found: string[] = [];
  for (const path of cgroupPaths(layout.cgroupRoot)) if (await machine.cgroups.exists(path)) found.push(path);
  return found;
}

export async function mountsOf(layout: RuntimeLayout): Promise<string[]> {
  const below = [`${layout.stateDirectory}/`, `${layout.runDirectory}/`];
  const targets = (await systemMounts.list()).map(({ target }) => target);
  return targets.filter((target) => below.some((directory) => target.startsWith(directory)));
}

/** UIDs of all pods in a state directory's journal. */
export async function journaledUids(layout: RuntimeLayout): Promise<ReadonlySet<string>> {
  const uids = new Set<string>();
  for (const name of await namesIn(layout.journal)) {
    const text = await readFile(join(layout.journal, name), "utf8").catch(() => "");
    for (const [, uid = ""] of text.matchAll(/"uid":"([^"]+)"/g)) uids.add(uid);
  }
  return uids;
}

/** What is left on this machine of a state directory whose engine has exited; a few words each. */
export async function tracesOf(layout: RuntimeLayout, uids: ReadonlySet<string>): Promise<string[]> {
  const found: string[] = [];
  for (const { pid, command } of await processesOf(layout)) found.push(`process ${pid} ${command}`);
  for (const target of await mountsOf(layout)) found.push(`mount ${target}`);
  for (const path of await cgroupsOf(layout)) found.push(`cgroup ${path}`);
  for (const name of await namesIn("/sys/class/net")) if (name === layout.cni.bridge) found.push(`interface ${name}`);
  for (const line of await firewallRules(layout)) found.push(`iptables rule ${line}`);
  for (const path of await pathsLeft(layout, uids)) found.push(`path ${path}`);
  return found;
}

/** Rules with the network's name, or, if CNI plugins write none, with an address of its pods. */
async function firewallRules(layout: RuntimeLayout): Promise<string[]> {
  const { stdout } = await systemProcesses.run("iptables-save", [], { timeoutMs: 30_000 * patience });
  const subnet = (await readFile(layout.cni.subnetFile, "utf8").catch(() => "")).trim();
  const addresses = subnet === "" ? undefined : `${subnet.split(".").slice(0, 3).join(".")}.`;
  return stdout.split("\n").filter((line) => {
    if (!line.startsWith("-A")) return false;
    if (line.includes(` -i ${layout.cni.bridge} `)) return true;
    const network = /name: \\"([^"\\]+)\\"/.exec(line)?.[1];
    if (network !== undefined) return network === layout.cni.networkName;
    return addresses !== undefined && line.includes(addresses);
  });
}

async function pathsLeft(layout: RuntimeLayout, uids: ReadonlySet<string>): Promise<string[]> {
  const below = async (directory: string, keep = (_name: string): boolean => true): Promise<string[]> => {
    return (await namesIn(directory)).filter(keep).map((name) => join(directory, name));
  };
  const logDirectories = await below(podLogs, (name) => uids.has(name.slice(name.lastIndexOf("_") + 1)));
  return [
    ...(await below(layout.runDirectory)),
    ...[`${SUBNET_CLAIM_DIRECTORY}/${layout.instance ?? "default"}`].filter((path) => existsSync(path)),
    ...(await addressesInUse(layout)),
    ...(await below(`${layout.kubeletRoot}/pods`)),
    ...(await below(layout.manifests)),
    ...logDirectories,
    ...(await below(layout.podLogs)),
    ...(await below(layout.containerLogs)),
    ...(await logLinksOf(uids)),
  ];
}

async function addressesInUse(layout: RuntimeLayout): Promise<string[]> {
  const directory = join(layout.cni.dataDirectory, layout.cni.networkName);
  return (await namesIn(directory)).filter((name) => /^[\d.]+$/.test(name)).map((name) => join(directory, name));
}

/** Links for log collectors to logs of these pods. */
async function logLinksOf(uids: ReadonlySet<string>): Promise<string[]> {
  const found: string[] = [];
  for (const name of await namesIn(logLinks)) {
    const path = join(logLinks, name);
    const target = await readlink(path).catch(() => "");
    const uid = /^\/var\/log\/pods\/[^/]*_([^/_]+)\//.exec(target)?.[1];
    if (uid !== undefined && uids.has(uid)) found.push(path);
  }
  return found;
}

/** Removes pods' logs and the links to them. */
export async function removeLogs(uids: ReadonlySet<string>): Promise<void> {
  for (const link of await logLinksOf(uids)) await rm(link, { force: true });
  for (const name of await namesIn(podLogs)) {
    if (!uids.has(name.slice(name.lastIndexOf("_") + 1))) continue;
    await rm(join(podLogs, name), { recursive: true, force: true });
  }
}

async function namesIn(directory: string): Promise<string[]> {
  return readdir(directory).catch(() => []);
}

/**
 * Removes a node's own directories and what outlasts it: the lock of its runtime, and the registration of its root
 * directory.
 */
export async function removeDirectories(layout: RuntimeLayout): Promise<void> {
  const { containerd, kubeletRoot, runDirectory, stateDirectory } = layout;
  await rm(runtimeLockPath(systemHashing, containerd.socket), { force: true });
  await rm(rootRegistration(systemHashing, kubeletRoot), { force: true });
  await rm(runDirectory, { recursive: true, force: true });
  await rm(stateDirectory, { recursive: true, force: true });
}
