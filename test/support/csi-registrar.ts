import { existsSync, mkdirSync, rmSync } from "node:fs";
import type { Server } from "node:net";
import { dirname } from "node:path";
import { serveGrpc } from "../../src/grpc/server.ts";
import { systemClock } from "../../src/linux/processes/clock.ts";
import { Registration } from "../../src/ports/gen/pluginregistration/v1/api_pb.js";

export const noLimit = { perSecond: 10_000, burst: 10_000 };

/** What a plugin's registration answers. */
export interface PluginIdentity {
  readonly type: string;
  readonly name: string;
  /** The plugin's socket, as the kubelet finds it. */
  readonly endpoint: string;
  readonly supportedVersions: string[];
}

/** Makes a plugin known to the kubelet by a socket below its `plugins_registry`, until disposed of. */
export async function serveRegistration(
  socket: string,
  info: () => Promise<PluginIdentity>,
  notified: (registered: boolean, error: string) => void,
): Promise<AsyncDisposable> {
  mkdirSync(dirname(socket), { recursive: true });
  return await serveGrpc(
    (router) => {
      router.service(Registration, {
        getInfo: info,
        notifyRegistrationStatus: ({ pluginRegistered, error }) => {
          notified(pluginRegistered, error);
          return {};
        },
      });
    },
    { clock: systemClock, limit: noLimit },
    (server) => listenAt(server, socket),
  );
}

/** Listens on a socket, which replaces that of a process that was killed; resolves to its removal. */
export async function listenAt(server: Server, path: string): Promise<() => Promise<void>> {
  if (existsSync(path)) rmSync(path);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject);
  server.listen(path, resolve);
  await promise;
  return async () => rmSync(path, { force: true });
}
