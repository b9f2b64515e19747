import type { Files } from "../ports/files.ts";
import type { ProcessInfo } from "../ports/processes.ts";
import { parseDocuments } from "../yaml/documents.ts";

/** A live process that drives pods on a runtime. */
export interface RuntimeUser {
  readonly process: ProcessInfo;
  /** CRI endpoint as it was given, e.g. `unix:///run/containerd/containerd.sock`. */
  readonly endpoint: string;
  /** The root directory without a flag, if it is not the Go kubelet's. */
  readonly usualRoot?: string;
}

/** A kind of node agent: how to recognise it, and its default runtime. */
interface NodeAgent {
  readonly isIt: (program: string, firstArgument: string | undefined) => boolean;
  readonly endpointFlags: readonly string[];
  readonly defaultEndpoint: string;
  readonly usualRoot?: string;
}

const CONTAINERD = "unix:///run/containerd/containerd.sock";

const nodeAgents: readonly NodeAgent[] = [
  {
    isIt: (program) => program === "kubelet",
    endpointFlags: ["--container-runtime-endpoint"],
    defaultEndpoint: CONTAINERD,
  },
  {
    isIt: (program, first) => /^(?:k3s|rke2)$/.test(program) && /^(?:server|agent)$/.test(first ?? ""),
    endpointFlags: ["--container-runtime-endpoint"],
    defaultEndpoint: "unix:///run/k3s/containerd/containerd.sock",
  },
  {
    // k3s and rke2 put these names into their process titles.
    isIt: (program) => /^(?:k3s|rke2)-(?:server|agent)$/.test(program),
    endpointFlags: ["--container-runtime-endpoint"],
    defaultEndpoint: "unix:///run/k3s/containerd/containerd.sock",
  },
  {
    isIt: (program, first) => program === "k0s" && /^(?:worker|controller)$/.test(first ?? ""),
    endpointFlags: ["--cri-socket"],
    defaultEndpoint: "unix:///run/k0s/containerd.sock",
  },
  {
    // MicroK8s; its kubelet's flags are in a file, with these values. Usually /var/lib/kubelet is a link to its root directory.
    isIt: (program) => program === "kubelite",
    endpointFlags: [],
    defaultEndpoint: "unix:///var/snap/microk8s/common/run/containerd.sock",
    usualRoot: "/var/snap/microk8s/common/var/lib/kubelet",
  },
  {
    isIt: (program, first) => program === "microshift" && first === "run",
    endpointFlags: [],
    defaultEndpoint: "unix:///run/crio/crio.sock",
  },
];

/**
 * The node agents among the processes, with the runtime that each uses: by its flag, else by its KubeletConfiguration,
 * else by its default.
 */
export async function runtimeUsers(files: Files, processes: readonly ProcessInfo[]): Promise<RuntimeUser[]> {
  const users: RuntimeUser[] = [];
  for (const process of processes) {
    const agent = nodeAgentOf(process);
    const endpoint = await (agent ? agentEndpoint(files, process, agent) : podwrightEndpoint(files, process));
    if (endpoint === undefined) continue;
    users.push({ process, endpoint, ...(agent?.usualRoot !== undefined && { usualRoot: agent.usualRoot }) });
  }
  return users;
}

function nodeAgentOf({ arguments: [command, ...rest] }: ProcessInfo): NodeAgent | undefined {
  if (command === undefined) return undefined;
  // Some rewrite their title to one argument, `/usr/local/bin/k3s server`.
  const [program, ...words] = [...command.split(" "), ...rest];
  return nodeAgents.find(({ isIt }) => isIt(baseName(program ?? ""), words[0]));
}

async function agentEndpoint(files: Files, process: ProcessInfo, agent: NodeAgent): Promise<string> {
  const fromFlag = agent.endpointFlags.map((flag) => flagValue(process.arguments, flag)).find(Boolean);
  // k0s writes `remote:unix:///path`.
  if (fromFlag !== undefined) return fromFlag.replace(/^remote:/, "");
  return (await configuredEndpoint(files, process)) ?? agent.defaultEndpoint;
}

/** The configured runtime of another podwright. Private runtimes are not checked: they are not shared. */
async function podwrightEndpoint(files: Files, process: ProcessInfo): Promise<string | undefined> {
  const [command, ...rest] = process.arguments;
  const program = baseName(command ?? "");
  const isPodwright =
    program === "podwright" || (program === "node" && rest.some((word) => /(?:^|\/)podwright(?:\.m?js)?$/.test(word)));
  if (!isPodwright) return undefined;
  // `run` itself is a client: the engine behind it is what uses a runtime.
  if (rest.includes("engine")) return flagValue(rest, "--runtime-endpoint");
  if (!rest.includes("kubelet")) return undefined;
  return flagValue(rest, "--container-runtime-endpoint") ?? (await configuredEndpoint(files, process)) ?? CONTAINERD;
}

/** `containerRuntimeEndpoint` of a kubelet's `--config` and `--config-dir` (KEP-3983: sorted `.conf` files, the last wins). */
async function configuredEndpoint(files: Files, process: ProcessInfo): Promise<string | undefined> {
  const paths: string[] = [];
  const config = flagValue(process.arguments, "--config");
  if (config !== undefined) paths.push(pathOf(process.pid, config));
  const directory = flagValue(process.arguments, "--config-dir");
  if (directory !== undefined) {
    const parent = pathOf(process.pid, directory);
    const entries = await files.list(parent).catch(() => []);
    const names = entries.map(({ name }) => name).filter((name) => name.endsWith(".conf"));
    paths.push(...names.toSorted().map((name) => `${parent}/${name}`));
  }
  let endpoint: string | undefined;
  for (const path of paths) endpoint = (await endpointInFile(files, path)) ?? endpoint;
  return endpoint;
}

const MAX_CONFIG_BYTES = 1024 * 1024;

async function endpointInFile(files: Files, path: string): Promise<string | undefined> {
  try {
    const text = new TextDecoder().decode(await files.read(path, MAX_CONFIG_BYTES));
    const document = parseDocuments(text, path, { onRepeatedKey: () => undefined }).documents[0]?.value;
    if (typeof document !== "object" || document === null) return undefined;
    const value = "containerRuntimeEndpoint" in document ? document.containerRuntimeEndpoint : undefined;
    return typeof value === "string" && value !== "" ? value : undefined;
  } catch {
    return undefined;
  }
}

/** A path as the process means it: below its own root, which is another one for a process in a container. */
function pathOf(pid: number, path: string): string {
  return path.startsWith("/") ? `/proc/${pid}/root${path}` : `/proc/${pid}/cwd/${path}`;
}

/** The last value of `--flag value` or `--flag=value`. */
function flagValue(arguments_: readonly string[], flag: string): string | undefined {
  let value: string | undefined;
  for (const [index, word] of arguments_.entries()) {
    if (word === flag) value = arguments_[index + 1];
    else if (word.startsWith(`${flag}=`)) value = word.slice(flag.length + 1);
  }
  return value;
}

function baseName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
