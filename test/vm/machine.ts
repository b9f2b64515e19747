import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { EngineClient } from "../../src/cli/engine-client.ts";
import { connectCri } from "../../src/cri/client.ts";
import { systemClock } from "../../src/linux/processes/clock.ts";
import { systemFiles } from "../../src/linux/files/files.ts";
import { systemHashing } from "../../src/linux/files/hashing.ts";
import { systemProcesses } from "../../src/linux/processes/processes.ts";
import { importBuiltInImages } from "../../src/private-runtime/image-import.ts";
import { type RuntimeLayout, runtimeLayout } from "../../src/private-runtime/layout.ts";
import { findPrograms } from "../../src/private-runtime/programs.ts";
import type { PodView } from "../../src/server/local-api.ts";
import { podObject, politeSleep } from "../support/manifests.ts";
import { until } from "../support/podwright.ts";

/** podwright's command, as the machine's users start it. */
export const podwright = join(resolve(import.meta.dirname, "../.."), "bin/podwright");
const cgroupRoot = "/sys/fs/cgroup";

/** Where podwright keeps things when the machine's own containerd is its runtime; made, with the built-in images in it. */
export async function prepareLayout(stateDirectory: string): Promise<RuntimeLayout> {
  const plain = runtimeLayout(stateDirectory, systemHashing);
  const socket = "/run/containerd/containerd.sock";
  const layout = { ...plain, containerd: { ...plain.containerd, socket, endpoint: `unix://${socket}` } };
  mkdirSync(layout.stateDirectory, { recursive: true, mode: 0o711 });
  using cri = connectCri(layout.containerd.endpoint, systemClock);
  const found = await findPrograms(systemFiles, []);
  if (!("programs" in found)) throw new Error(`missing: ${found.missing.join(", ")}`);
  const ports = { clock: systemClock, files: systemFiles, hashing: systemHashing, processes: systemProcesses };
  await importBuiltInImages(ports, layout, found.programs, cri);
  return layout;
}

/** A pod of one container with these resources. */
export function podWithResources(name: string, resources: object | undefined, script = politeSleep): PodObject {
  const pod = podObject(name, script) as PodObject;
  return { ...pod, spec: { ...pod.spec, containers: pod.spec.containers.map((app) => ({ ...app, resources })) } };
}

interface PodObject {
  readonly spec: { readonly containers: readonly object[] };
}

/**
 * Waits until a pod matches.
 * @param evidence data that helps to understand a failure
 */
export async function podThatIs(
  client: EngineClient,
  name: string,
  isSo: (pod: PodView) => boolean,
  evidence: () => string,
): Promise<PodView> {
  let pod: PodView | undefined;
  const matches = async (): Promise<boolean> => {
    pod = (await client.pods()).find((candidate) => candidate.name === name);
    return pod !== undefined && isSo(pod);
  };
  await until(() => `pod ${name}: ${JSON.stringify(pod, undefined, 1)}\n${evidence()}`, matches);
  if (pod === undefined) throw new Error(`no pod ${name}`);
  return pod;
}

/**
 * The slice of a pod: its path below the tree's root.
 * @param parents of it, e.g. `["kubepods", "burstable"]`: the class of Guaranteed pods has no slice of its own
 */
export function podSlice({ uid }: PodView, parents: readonly string[]): string {
  const names = [...parents, `pod${uid.replaceAll("-", "_")}`];
  return names.map((_, index) => `${names.slice(0, index + 1).join("-")}.slice`).join("/");
}

/** The cgroup of a pod's only container. */
export function containerScope({ containers: [only] }: PodView): string {
  return `cri-containerd-${only?.id ?? ""}.scope`;
}

/** What a cgroup's files hold. */
export function cgroupValues<File extends string>(path: string, ...files: readonly File[]): Record<File, string> {
  const valueOf = (file: File): string => readFileSync(join(cgroupRoot, path, file), "utf8").trim();
  return Object.fromEntries(files.map((file) => [file, valueOf(file)])) as Record<File, string>;
}

/** What runs where, and what systemd did last: for failures. */
export function machineState(): string {
  const look = "ps axf -o pid,cgroup,args | grep kubepods; find /sys/fs/cgroup/kubepods.slice -type d";
  const units = "systemctl list-units --all --no-pager --full '*.slice' '*.scope'; journalctl --no-pager --lines=200";
  return run("sh", ["-c", `${look}; ${units}`]);
}

export function cgroupIsThere(path: string): boolean {
  return existsSync(join(cgroupRoot, path));
}

/** Runs a program that has to succeed; returns what it printed. */
export function run(program: string, words: readonly string[]): string {
  return execFileSync(program, words, { encoding: "utf8" }).trim();
}
