import { homedir } from "node:os";
import { isAbsolute } from "node:path/posix";

/**
 * Where the node's own credentials for registries are looked for, as upstream does: in the kubelet's root directory, of
 * its user and of the whole machine, of `docker login` today and of long ago. Besides, where `docker login` was told to
 * keep them; not the working directory, which says nothing about a node.
 */
export function credentialFiles(rootDirectory: string): string[] {
  const docker = process.env["DOCKER_CONFIG"] ?? "";
  const directories = [rootDirectory, docker, `${homedir()}/.docker`, "/.docker"].filter(isAbsolute);
  const old = [rootDirectory, homedir(), ""].filter((directory) => directory === "" || isAbsolute(directory));
  return [
    ...directories.map((directory) => `${directory}/config.json`),
    ...old.map((directory) => `${directory}/.dockercfg`),
  ];
}
