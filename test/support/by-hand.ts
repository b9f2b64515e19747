import assert from "node:assert/strict";
import { globSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { CpuStats, MemoryStats, NetworkStats, PsiStats, Summary } from "../../src/stats/summary-types.ts";

/** Counters by what they count. */
export type Counters = ReadonlyMap<string, number>;

const mounted = "/sys/fs/cgroup";
const isUnified = !readdirSync(mounted).includes("memory");

/** The cgroup of a pod or container, found by name; for an empty name the machine's. */
function cgroupOf(controller: string, id: string): string {
  const root = isUnified ? mounted : `${mounted}/${controller}`;
  if (id === "") return root;
  const [found] = globSync(`**/*{${id},${id.replaceAll("-", "_")}}*`, { cwd: root });
  assert.ok(found, `no cgroup of ${id}`);
  return join(root, found);
}

function textOf(...parts: readonly string[]): string {
  return readFileSync(join(...parts), "utf8");
}

function numberAfter(text: string, name: string): number {
  return Number(new RegExp(`^${name} (\\d+)`, "mu").exec(text)?.[1]);
}

/** Nanoseconds of CPU time. */
function cpuOf(id: string): number {
  if (!isUnified) return Number(textOf(cgroupOf("cpuacct", id), "cpuacct.usage"));
  return numberAfter(textOf(cgroupOf("cpu", id), "cpu.stat"), "usage_usec") * 1000;
}

function memoryOf(id: string): string {
  return textOf(cgroupOf("memory", id), "memory.stat");
}

/** By interface. @param process whose network */
function networkOf(process: string, prefix: string): [string, number][] {
  return [...textOf("/proc", process, "net/dev").matchAll(/^\s*(\S+):(.*)$/gmu)].flatMap(([, name = "", rest = ""]) => {
    const figures = rest.trim().split(/\s+/u).map(Number);
    const at = (index: number): number => figures[index] ?? Number.NaN;
    const shown = { rxBytes: at(0), rxErrors: at(2), txBytes: at(8), txErrors: at(10) };
    return Object.entries(shown).map(([key, value]): [string, number] => [`${prefix} ${name} ${key}`, value]);
  });
}

/** Microseconds waited. */
function pressureOf(path: string, prefix: string): [string, number][] {
  return ["some", "full"].map((kind) => {
    return [`${prefix} ${kind}`, Number(new RegExp(`^${kind} .*total=(\\d+)`, "mu").exec(textOf(path))?.[1])];
  });
}

/**
 * Counters read directly from the kernel for the machine, a pod and its containers.
 * @param containers IDs by name; the first one's process has the pod's network
 */
export function countersByHand(podUid: string, containers: Readonly<Record<string, string>>): Counters {
  const all = { node: "", pod: podUid, ...containers };
  const [first = ""] = Object.values(containers);
  const [process = ""] = textOf(cgroupOf("memory", first), "cgroup.procs").split("\n");
  return new Map([
    ...Object.entries(all).flatMap(([name, id]): [string, number][] => {
      const memory = memoryOf(id);
      return [
        [`${name} processor`, cpuOf(id)],
        [`${name} page faults`, numberAfter(memory, "pgfault")],
        [`${name} major page faults`, numberAfter(memory, "pgmajfault")],
      ];
    }),
    ...Object.entries(all).flatMap(([name, id]) => {
      if (!isUnified && id !== "") return [];
      return (["cpu", "memory", "io"] as const).flatMap((resource) => {
        const path = id === "" ? `/proc/pressure/${resource}` : join(cgroupOf(resource, id), `${resource}.pressure`);
        return pressureOf(path, `${name} ${resource} waited`);
      });
    }),
    ...networkOf("self", "node"),
    ...networkOf(process, "pod"),
  ]);
}

interface Measured {
  readonly cpu?: CpuStats;
  readonly memory?: MemoryStats;
  readonly io?: { readonly psi?: PsiStats };
  readonly network?: NetworkStats;
}

/** The same counters from a summary. */
export function countersShown({ node, pods }: Summary, podName: string): Counters {
  const pod = pods.find(({ podRef }) => podRef.name === podName);
  assert.ok(pod);
  const own = Object.fromEntries(pod.containers.map((container) => [container.name, container]));
  const all: Readonly<Record<string, Measured>> = { node, pod, ...own };
  return new Map(Object.entries(all).flatMap(([name, measured]) => measuredOf(name, measured)));
}

function measuredOf(name: string, { cpu, memory, io, network }: Measured): [string, number][] {
  const found: [string, number | undefined][] = [
    [`${name} processor`, cpu?.usageCoreNanoSeconds],
    [`${name} page faults`, memory?.pageFaults],
    [`${name} major page faults`, memory?.majorPageFaults],
  ];
  for (const [resource, psi] of Object.entries({ cpu: cpu?.psi, memory: memory?.psi, io: io?.psi })) {
    found.push(
      [`${name} ${resource} waited some`, psi?.some.total],
      [`${name} ${resource} waited full`, psi?.full.total],
    );
  }
  for (const { name: device, rxBytes, rxErrors, txBytes, txErrors } of network?.interfaces ?? []) {
    const figures = { rxBytes, rxErrors, txBytes, txErrors };
    for (const [key, value] of Object.entries(figures)) found.push([`${name} ${device} ${key}`, value]);
  }
  return found.flatMap(([key, value]) => (value === undefined ? [] : [[key, value]]));
}
