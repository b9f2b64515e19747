import { homedir } from "node:os";
import { isAbsolute } from "node:path/posix";

/**
 * The files with the node's own registry credentials, as upstream: in the kubelet's root directory, of its user and of
 * the machine, in the current and the old format of `docker login`. Also in Docker's configured directory; not in the
 * working directory, which is arbitrary for a node.
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
