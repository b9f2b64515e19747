import { errorMessage } from "../base/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { PluginClient } from "../ports/plugin-client.ts";
import type { RpcService } from "../ports/rpc.ts";
import type { Registration } from "../ports/gen/pluginregistration/v1/api_pb.js";
import type { PluginHandler, PluginInfo } from "./plugin-handler.ts";

export interface RegistrationParts {
  readonly clock: Clock;
  readonly plugins: PluginClient;
  readonly handlers: readonly PluginHandler[];
}

export interface IntroducedPlugin {
  readonly info: PluginInfo;
  readonly handler: PluginHandler;
}

/** Deadlines of GetInfo and NotifyRegistrationStatus, as upstream. */
const [infoLimitMs, notifyLimitMs] = [1000, 5000];
/** `sockaddr_un` has room for 108 bytes with the final NUL (unix(7)). */
const longestPathBytes = 107;

/** A failed registration; the plugin receives the message, which is upstream's. */
export class RegistrationError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(`RegisterPlugin error -- ${message}`, options);
    this.name = "RegistrationError";
  }
}

/**
 * Requests a plugin's description, registers it with the handler of its type, and notifies it of the result.
 * @param taken called just before the handler registers it: from then on it must be deregistered when its socket is
 * removed
 * @throws RegistrationError
 */
export async function introduce(
  { plugins, handlers }: RegistrationParts,
  socket: string,
  signal: AbortSignal,
  taken: (plugin: IntroducedPlugin) => void,
): Promise<IntroducedPlugin> {
  using calls = await connect(plugins, socket);
  const info = await ask(calls, socket, signal);
  signal.throwIfAborted();
  try {
    const handler = handlerOf(info, handlers, socket);
    const problem = pathProblem(info.endpoint) ?? handler.validate(info);
    if (problem !== undefined) throw new RegistrationError(`plugin validation failed with err: ${problem}`);
    taken({ info, handler });
    await handler.register(info, signal).catch((error: unknown) => {
      signal.throwIfAborted();
      const message = `plugin registration failed with err: ${errorMessage(error)}`;
      throw new RegistrationError(message, { cause: error });
    });
    await notify(calls, { pluginRegistered: true, error: "" }, signal);
    return { info, handler };
  } catch (error) {
    if (error instanceof RegistrationError && !(error instanceof NotifyError)) {
      await notify(calls, { pluginRegistered: false, error: error.message }, signal);
    }
    throw error;
  }
}

/** A plugin's own description, without registering it. @throws RegistrationError */
export async function describePlugin(plugins: PluginClient, socket: string, signal: AbortSignal): Promise<PluginInfo> {
  using calls = await connect(plugins, socket);
  return await ask(calls, socket, signal);
}

async function connect(plugins: PluginClient, socket: string): Promise<RpcService<typeof Registration> & Disposable> {
  // Loaded only if there is a plugin.
  const { Registration: service } = await import("../ports/gen/pluginregistration/v1/api_pb.js");
  return plugins.connect(service, socket, `plugin at ${socket}`);
}

class NotifyError extends RegistrationError {}

async function ask(calls: RpcService<typeof Registration>, socket: string, signal: AbortSignal): Promise<PluginInfo> {
  try {
    const { type, name, endpoint, supportedVersions } = await calls.getInfo({}, { timeoutMs: infoLimitMs, signal });
    return { type, name, endpoint: endpoint || socket, versions: supportedVersions };
  } catch (error) {
    signal.throwIfAborted();
    const message = `failed to get plugin info using RPC GetInfo at socket ${socket}, err: ${errorMessage(error)}`;
    throw new RegistrationError(message, { cause: error });
  }
}

function handlerOf({ type }: PluginInfo, handlers: readonly PluginHandler[], socket: string): PluginHandler {
  const handler = handlers.find((each) => each.type === type);
  if (handler !== undefined) return handler;
  throw new RegistrationError(`no handler registered for plugin type: ${type} at socket ${socket}`);
}

function pathProblem(endpoint: string): string | undefined {
  if (!endpoint.startsWith("/") || endpoint.includes("\0")) {
    return `the endpoint ${JSON.stringify(endpoint)} is not an absolute path`;
  }
  const isLong = new TextEncoder().encode(endpoint).length > longestPathBytes;
  return isLong ? `the endpoint is longer than ${longestPathBytes} bytes, the limit of socket paths` : undefined;
}

async function notify(
  calls: RpcService<typeof Registration>,
  status: { readonly pluginRegistered: boolean; readonly error: string },
  signal: AbortSignal,
): Promise<void> {
  try {
    await calls.notifyRegistrationStatus(status, { timeoutMs: notifyLimitMs, signal });
  } catch (error) {
    signal.throwIfAborted();
    const said = status.error === "" ? "" : `${status.error}: `;
    throw new NotifyError(`${said}failed to send registration status, err: ${errorMessage(error)}`, { cause: error });
  }
}
