import { basename, join } from "node:path/posix";
import { errorMessage } from "../base/errors.ts";
import { pluginClient } from "../grpc/plugin-client.ts";
import { systemVolumeFiles } from "../linux/files/volume-files.ts";
import { describePlugin } from "../plugins/registration.ts";
import { findSockets } from "../plugins/registration-sockets.ts";
import type { PluginClient } from "../ports/plugin-client.ts";
import { type Check, oneLine, passed, warned } from "../private-runtime/preflight/check.ts";
import type { MachineContext } from "./machine-context.ts";

const remedy = "keep the Go kubelet on nodes whose pods need this plugin";

/** The plugins that are registered on this node, and whether podwright supports them. */
export async function pluginFindings(
  { files, clock }: Pick<MachineContext, "files" | "clock">,
  rootDirectory: string,
): Promise<readonly Check[]> {
  const top = join(rootDirectory, "plugins_registry");
  const { sockets } = await findSockets({ files, volumeFiles: systemVolumeFiles }, top);
  const plugins = pluginClient(clock);
  const registered = await Promise.all(sockets.map(async ({ path }) => pluginCheck(plugins, path)));
  const devices = (await files.list(join(rootDirectory, "device-plugins")))
    .map(({ name }) => name)
    .filter((name) => name.endsWith(".sock") && name !== "kubelet.sock");
  const unsupported = devices.map((name) =>
    warned("plugins", `${name} is registered: device plugins are not supported`, remedy),
  );
  return [...registered, ...unsupported];
}

async function pluginCheck(plugins: PluginClient, socket: string): Promise<Check> {
  try {
    const { type, name } = await describePlugin(plugins, socket, AbortSignal.any([]));
    if (type === "CSIPlugin") return passed("plugins", `the CSI driver ${name} is registered`);
    return warned("plugins", `${name} (${type}) is registered: only CSI drivers are supported`, remedy);
  } catch (error) {
    return warned(
      "plugins",
      `${basename(socket)} does not describe its plugin: ${oneLine(errorMessage(error))}`,
      "remove the socket if its plugin is gone",
    );
  }
}
