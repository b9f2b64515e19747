import { machineIdFiles, systemUuidFiles, trimmedText } from "../node/node-facts.ts";
import type { StatsFiles } from "../ports/stats-files.ts";
import type { CadvisorView, CgroupLabels, FileSystemView, LabelledView, MachineView } from "./cadvisor-metrics.ts";
import type { ProcessFigures } from "./view-metric.ts";
import type { CgroupSample } from "./cgroup-sample.ts";
import { type DiskCounters, deviceNumber, deviceSample, mountedDisks, parseDiskStats } from "./disk-counters.ts";
import { parseMemInfo, parseOpenFilesLimit } from "../base/kernel-text.ts";
import type { NodeSample, PodSample } from "./node-sample.ts";

export interface CadvisorSettings {
  /** Directories whose file systems are reported: the node's, the images'. */
  readonly fileSystems: readonly string[];
  readonly version: string;
}

/**
 * Adds what only `/metrics/cadvisor` reports: open files, limits, devices, the machine.
 * @param sandboxImages by sandbox ID, as far as they are known
 */
export async function cadvisorView(
  files: StatsFiles,
  node: NodeSample,
  { fileSystems, version }: CadvisorSettings,
  sandboxImages: ReadonlyMap<string, string> = new Map(),
): Promise<CadvisorView> {
  const [diskstats] = await files.readTexts(["/proc/diskstats"]);
  const disks = parseDiskStats(diskstats);
  const devices = new Map(disks.map((disk) => [deviceNumber(disk), disk.name]));
  const cgroups: LabelledView[] = [machineView(node, devices, mountedDisks(disks, await files.mountedDevices()))];
  for (const { cgroup, startedMs, sample } of node.system) {
    if (cgroup === "/" || cgroups.some(({ labels }) => labels.id === cgroup)) continue;
    cgroups.push({
      labels: labelsOf(cgroup, {}),
      sample,
      network: undefined,
      processes: undefined,
      startedMs,
      devices,
    });
  }
  for (const pod of node.pods) {
    const sandboxImage = sandboxImages.get(pod.pod.sandboxId) ?? "";
    cgroups.push(...(await podViews(files, pod, sandboxImage, devices)));
  }
  const views = await Promise.all(fileSystems.map(async (path) => await fileSystemView(files, path)));
  return {
    timeMs: node.timeMs,
    cgroups,
    fileSystems: [...new Map(views.flatMap((view) => (view === undefined ? [] : [[view.device, view]]))).values()],
    machine: await machineOf(files),
    version,
  };
}

/** Disk totals come from the kernel's counters of mounted devices, because a v1 root cgroup may have none. */
function machineView(
  { machine }: NodeSample,
  devices: ReadonlyMap<string, string>,
  disks: readonly DiskCounters[],
): LabelledView {
  const { sample, network, bootedMs, ioPressure } = machine;
  const names = new Map(disks.map((disk) => [deviceNumber(disk), disk.name]));
  const costs = new Map(sample.io?.devices.map((device) => [deviceNumber(device), device.cost]));
  const mounted = disks.map((disk) => ({ ...deviceSample(disk), cost: costs.get(deviceNumber(disk)) }));
  const others = sample.io?.devices.filter((device) => !names.has(deviceNumber(device))) ?? [];
  return {
    labels: labelsOf("/", {}),
    sample: { ...sample, io: { devices: [...mounted, ...others], pressure: ioPressure } },
    network,
    processes: undefined,
    startedMs: bootedMs,
    devices: new Map([...devices, ...names]),
    disks,
  };
}

async function podViews(
  files: StatsFiles,
  { pod, sample, sandbox, containers, network }: PodSample,
  sandboxImage: string,
  devices: ReadonlyMap<string, string>,
): Promise<LabelledView[]> {
  const { ref } = pod;
  const owner = { pod: ref.name, namespace: ref.namespace };
  const none = { network: undefined, processes: undefined, devices };
  const views: LabelledView[] = [];
  if (sample !== undefined && pod.cgroup !== undefined) {
    views.push({ ...none, labels: labelsOf(pod.cgroup, owner), sample, startedMs: pod.createdMs });
  }
  if (sandbox !== undefined) {
    const own = labelsOf(sandbox.cgroup, {
      ...owner,
      name: pod.sandboxAlias,
      image: sandboxImage,
      container: pod.sandboxContainer,
    });
    const processes = await processFigures(files, sandbox.sample);
    views.push({ labels: own, sample: sandbox.sample, network, processes, startedMs: pod.createdMs, devices });
  }
  for (const { container, cgroup, sample: used } of containers) {
    const own = labelsOf(cgroup, {
      ...owner,
      name: container.alias,
      image: container.image,
      container: container.name,
    });
    const processes = await processFigures(files, used);
    views.push({ ...none, labels: own, sample: used, processes, startedMs: container.createdMs });
  }
  return views;
}

function labelsOf(id: string, known: Partial<CgroupLabels>): CgroupLabels {
  return { name: "", image: "", pod: "", namespace: "", container: "", ...known, id };
}

async function processFigures(files: StatsFiles, { pids }: CgroupSample): Promise<ProcessFigures> {
  let [descriptors, sockets] = [0, 0];
  for (const pid of pids) {
    const open = await files.openFiles(pid);
    descriptors += open?.descriptors ?? 0;
    sockets += open?.sockets ?? 0;
  }
  const [limits] = pids[0] === undefined ? [] : await files.readTexts([`/proc/${pids[0]}/limits`]);
  return { processes: pids.length, descriptors, sockets, openFilesLimit: parseOpenFilesLimit(limits) };
}

async function fileSystemView(files: StatsFiles, path: string): Promise<FileSystemView | undefined> {
  const unknown = (): undefined => {};
  const [usage, device] = await Promise.all([
    files.fileSystem(path).catch(unknown),
    files.deviceOf(path).catch(unknown),
  ]);
  if (usage === undefined || device === undefined) return undefined;
  const { capacityBytes, usedBytes, inodes, inodesFree } = usage;
  return { device, capacityBytes, usedBytes, inodes, inodesFree };
}

/** The machine's properties from kernel files; missing ones are empty, 0 or 1. */
export async function machineOf(files: Pick<StatsFiles, "readTexts">): Promise<MachineView> {
  const [cpuinfo, meminfo, release, bootId, osRelease, ...ids] = await files.readTexts([
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/sys/kernel/osrelease",
    "/proc/sys/kernel/random/boot_id",
    "/etc/os-release",
    ...machineIdFiles,
    ...systemUuidFiles,
  ]);
  const memory = parseMemInfo(meminfo);
  const first = (texts: readonly (string | undefined)[]): string =>
    texts.map((text = "") => trimmedText(text)).find((text) => text !== "") ?? "";
  return {
    ...parseProcessors(cpuinfo),
    bootId: bootId?.trim() ?? "",
    machineId: first(ids.slice(0, machineIdFiles.length)),
    systemUuid: first(ids.slice(machineIdFiles.length)),
    memoryBytes: memory.get("MemTotal") ?? 0,
    swapBytes: memory.get("SwapTotal") ?? 0,
    kernelVersion: release?.trim() ?? "",
    osVersion: /^PRETTY_NAME="?([^"\n]*)/mu.exec(osRelease ?? "")?.[1] ?? "",
  };
}

/**
 * Logical processors, cores and sockets from /proc/cpuinfo; without core IDs (ARM), each processor counts as a core.
 */
export function parseProcessors(cpuinfo: string | undefined): Pick<MachineView, "cores" | "physicalCores" | "sockets"> {
  const blocks = (cpuinfo ?? "").split(/\n\n/u).filter((block) => /^processor\s*:/mu.test(block));
  const field = (block: string, name: string): string | undefined =>
    new RegExp(`^${name}\\s*:\\s*(\\d+)`, "mu").exec(block)?.[1];
  const cores = new Set<string>();
  const sockets = new Set<string>();
  for (const block of blocks) {
    const socket = field(block, "physical id") ?? "0";
    sockets.add(socket);
    cores.add(`${socket}/${field(block, "core id") ?? `p${field(block, "processor")}`}`);
  }
  return { cores: blocks.length, physicalCores: cores.size, sockets: sockets.size };
}
