import { errorMessage } from "../base/errors.ts";
import { FileError, type Files } from "../ports/files.ts";
import type { Hashing } from "../ports/hashing.ts";
import type { Logger } from "../ports/log.ts";
import { DEFAULT_STATE_DIRECTORY, RUN_ROOT, SUBNET_CLAIM_DIRECTORY } from "./layout.ts";

/** Root directories of all podwrights of the machine that have run since it started: one file for each, which holds the path. */
const ROOT_DIRECTORY = `${RUN_ROOT}/roots`;
/**
 * Root directories of kubelets that do not register them: the Go kubelet, and `podwright run` before it had {@link
 * ROOT_DIRECTORY}.
 */
const USUAL_ROOTS = ["/var/lib/kubelet", `${DEFAULT_STATE_DIRECTORY}/kubelet`];
const maxBytes = 64 * 1024;

interface RootDependencies {
  readonly files: Files;
  readonly hashing: Hashing;
  readonly log: Logger;
}

/** The file by which the other nodes of the machine know of a root directory. */
export function rootRegistration(hashing: Hashing, rootDirectory: string): string {
  return `${ROOT_DIRECTORY}/${hashing.sha256(rootDirectory).slice(0, 16)}`;
}

/** Registers this node's root directory for the other nodes of the machine, and removes those that are gone. */
export async function registerRoot({ files, hashing, log }: RootDependencies, rootDirectory: string): Promise<void> {
  try {
    // First: a registration without its directory counts as left over.
    await files.makeDirectory(rootDirectory, 0o750);
    await files.makeDirectory(ROOT_DIRECTORY, 0o755);
    await files.writeAtomic(rootRegistration(hashing, rootDirectory), `${rootDirectory}\n`, 0o644);
    for (const root of await registered(files)) {
      if ((await files.stat(root)) === undefined) await files.remove(rootRegistration(hashing, root));
    }
  } catch (error) {
    log.warn("cannot register the root directory for other nodes of this machine", {
      path: ROOT_DIRECTORY,
      error: errorMessage(error),
    });
  }
}

/** For a node that ends without pods, so that other nodes need not know its root. */
export async function unregisterRoot({ files, hashing, log }: RootDependencies, rootDirectory: string): Promise<void> {
  const path = rootRegistration(hashing, rootDirectory);
  await files.remove(path).catch((error: unknown) => {
    log.warn("cannot unregister the root directory", { path, error: errorMessage(error) });
  });
}

/**
 * The other nodes of this machine that may have a pod, i.e. have a directory for it.
 * @throws FileError if that cannot be determined
 */
export async function podsOfOthers(
  files: Files,
  ownRoot: string,
): Promise<{ readonly has: (uid: string) => Promise<boolean> }> {
  const roots = new Set(await rootsOfNodes(files));
  roots.delete(ownRoot);
  return {
    has: async (uid) => {
      for (const root of roots) if ((await files.stat(`${root}/pods/${uid}`)) !== undefined) return true;
      return false;
    },
  };
}

/**
 * Root directories of nodes that this machine has or has had since it started.
 * @throws FileError if that cannot be determined
 */
export async function rootsOfNodes(files: Files): Promise<readonly string[]> {
  return [...USUAL_ROOTS, ...(await registered(files)), ...(await withSubnets(files))];
}

async function registered(files: Files): Promise<string[]> {
  return (await lines(files, ROOT_DIRECTORY)).map((line) => line.trim()).filter((root) => root.startsWith("/"));
}

/** Engines of `podwright run` that were started before they registered have a claim on their pods' subnet. */
async function withSubnets(files: Files): Promise<string[]> {
  return (await lines(files, SUBNET_CLAIM_DIRECTORY)).flatMap((line) => {
    const stateDirectory = /^\S+ (\/.*)$/u.exec(line.trim())?.[1];
    return stateDirectory === undefined ? [] : [`${stateDirectory}/kubelet`];
  });
}

/** Of each file of a directory all that is in it. One that goes meanwhile says nothing. */
async function lines(files: Files, directory: string): Promise<string[]> {
  const texts: string[] = [];
  for (const { name, type } of await files.list(directory)) {
    if (type !== "file") continue;
    try {
      texts.push(new TextDecoder().decode(await files.read(`${directory}/${name}`, maxBytes)));
    } catch (error) {
      if (!(error instanceof FileError && error.code === "ENOENT")) throw error;
    }
  }
  return texts;
}
