import type { Files } from "../ports/files.ts";

/** The programs that a private runtime consists of, by absolute path. */
export interface Programs {
  readonly containerd: string;
  readonly "containerd-shim-runc-v2": string;
  readonly ctr: string;
  readonly runc: string;
  readonly iptables: string;
  readonly catatonit: string;
  readonly busybox: string;
  /** Directory of the CNI plugins. */
  readonly cniPlugins: string;
}

export type ProgramName = keyof Programs;

/** What podwright calls itself, by its name: a file system may need the helpers that it knows. */
export type ToolName = "mount" | "umount";

/** Which Debian package brings which program. */
const debianPackages: Readonly<Record<ProgramName, string>> = {
  containerd: "containerd",
  "containerd-shim-runc-v2": "containerd",
  ctr: "containerd",
  runc: "runc",
  iptables: "iptables",
  catatonit: "catatonit",
  busybox: "busybox-static",
  cniPlugins: "containernetworking-plugins",
};

/** What to install where there are no Debian packages. */
const projects: Readonly<Record<ProgramName, string>> = {
  containerd: "containerd 1.6 or newer (https://containerd.io)",
  "containerd-shim-runc-v2": "containerd 1.6 or newer (https://containerd.io)",
  ctr: "containerd 1.6 or newer (https://containerd.io)",
  runc: "runc (https://github.com/opencontainers/runc)",
  iptables: "iptables",
  catatonit: "catatonit, statically linked (https://github.com/openSUSE/catatonit)",
  busybox: "busybox, statically linked (https://busybox.net)",
  cniPlugins: "the CNI plugins in /opt/cni/bin (https://github.com/containernetworking/plugins)",
};

const toolNames: readonly ToolName[] = ["mount", "umount"];
const toolSources = { debian: "mount", project: "util-linux" } as const;

/** Where system programs are besides `PATH`, which lacks the sbin directories for many users. */
const systemDirectories = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
const cniDirectories = ["/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"];
const cniPluginNames = ["bridge", "host-local", "portmap", "loopback"];

/** The directories to search: the given ones first, then the system's. */
export function programDirectories(searchPath: readonly string[]): string[] {
  return [...new Set([...searchPath.filter((directory) => directory.startsWith("/")), ...systemDirectories])];
}

/** Finds each program in the first directory that has it. */
export async function findPrograms(
  files: Files,
  searchPath: readonly string[],
): Promise<{ readonly programs: Programs } | { readonly missing: readonly ProgramName[] }> {
  const found: Partial<Record<ProgramName, string>> = {};
  for (const name of Object.keys(debianPackages) as ProgramName[]) {
    const path = name === "cniPlugins" ? await findCniPlugins(files) : await find(files, name, searchPath);
    if (path !== undefined) found[name] = path;
  }
  return isComplete(found)
    ? { programs: found }
    : { missing: (Object.keys(debianPackages) as ProgramName[]).filter((name) => found[name] === undefined) };
}

/** The programs by what brings them, each with one clause on how to get it. */
export function missingPackages<Name extends ProgramName | ToolName>(
  missing: readonly Name[],
  isDebian: boolean,
): readonly { readonly programs: readonly Name[]; readonly advice: string }[] {
  const source = (name: ProgramName | ToolName): string => {
    if (isTool(name)) return isDebian ? toolSources.debian : toolSources.project;
    return (isDebian ? debianPackages : projects)[name];
  };
  return [...Map.groupBy(missing, source)].map(([from, programs]) => {
    return { programs, advice: isDebian ? `run: apt-get install ${from}` : `install ${from}` };
  });
}

function isTool(name: ProgramName | ToolName): name is ToolName {
  return name === "mount" || name === "umount";
}

/** The tools that no directory has. */
export async function missingTools(files: Files, searchPath: readonly string[]): Promise<readonly ToolName[]> {
  const places = await Promise.all(toolNames.map((name) => find(files, name, searchPath)));
  return toolNames.filter((_name, index) => places[index] === undefined);
}

/** The directory of a program. */
export async function directoryOf(
  files: Files,
  name: string,
  searchPath: readonly string[],
): Promise<string | undefined> {
  const path = await find(files, name, searchPath);
  return path?.slice(0, path.lastIndexOf("/"));
}

function isComplete(found: Partial<Record<ProgramName, string>>): found is Programs {
  return Object.keys(debianPackages).every((name) => found[name as ProgramName] !== undefined);
}

async function find(files: Files, name: string, searchPath: readonly string[]): Promise<string | undefined> {
  for (const directory of programDirectories(searchPath)) {
    const path = `${directory}/${name}`;
    if (await isExecutable(files, path)) return path;
  }
  return undefined;
}

async function findCniPlugins(files: Files): Promise<string | undefined> {
  for (const directory of cniDirectories) {
    const present = await Promise.all(cniPluginNames.map((name) => isExecutable(files, `${directory}/${name}`)));
    if (present.every(Boolean)) return directory;
  }
  return undefined;
}

/** True for an executable file, or a link to one. */
async function isExecutable(files: Files, path: string): Promise<boolean> {
  try {
    const info = await files.stat(await files.realPath(path));
    return info?.type === "file" && (info.mode & 0o111) !== 0;
  } catch {
    return false;
  }
}
