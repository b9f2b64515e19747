import { operationRetryMs } from "../base/operation-retry.ts";
import { errorMessage } from "../base/errors.ts";
import { WakeableWait } from "../base/wakeable-wait.ts";
import type { Recorder } from "../journal/entry.ts";
import type { Clock } from "../ports/clock.ts";
import type { Files } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";
import type { PluginClient } from "../ports/plugin-client.ts";
import { DirectoryWatches } from "./directory-watches.ts";
import type { PluginHandler, PluginInfo } from "./plugin-handler.ts";
import { introduce } from "./registration.ts";
import { findSockets, type RegistrationSocket, type SocketFiles } from "./registration-sockets.ts";

export interface PluginRegistryDependencies extends SocketFiles {
  readonly files: Pick<Files, "list" | "stat" | "realPath" | "makeDirectory" | "watchEntries">;
  readonly clock: Clock;
  readonly journal: Recorder;
  readonly log: Logger;
  readonly plugins: PluginClient;
  readonly handlers: readonly PluginHandler[];
  /** Receives all sockets when one appears, disappears or is registered. */
  readonly onSockets: (sockets: PluginRegistry["sockets"]) => void;
}

/** The watch reports changes at once; this is for those that it missed. */
const rescanMs = 60_000;

/** A present socket and the state of its registration. */
interface Registration {
  readonly socket: RegistrationSocket;
  readonly abort: AbortController;
  /** The registered plugin. */
  plugin?: { readonly info: PluginInfo; readonly handler: PluginHandler };
  /** Since when. */
  registeredAtMs?: number;
  /** In progress. */
  work?: Promise<void> | undefined;
  /** Of this socket: another one at its path starts with the shortest pause. */
  failures: number;
  retryAtMs: number;
  /** Why the last attempt failed. */
  problem?: string;
}

/**
 * Registers plugins whose sockets appear below a directory (upstream's plugin manager): requests each plugin's
 * description, passes it to the handler of its type, and notifies the plugin of the result. Deregisters a plugin whose
 * socket was removed or replaced. Each socket has its own task, so a hanging plugin delays no other.
 */
export class PluginRegistry {
  readonly #deps: PluginRegistryDependencies;
  readonly #directory: string;
  readonly #registrations = new Map<string, Registration>();
  readonly #wait: WakeableWait;
  readonly #watches: DirectoryWatches;
  /** Sockets that were taken away since the last look, whether or not another one is there now. */
  readonly #removed = new Set<string>();
  /** Sockets that a scan found replaced before the watch reported the removal. */
  readonly #announced = new Set<string>();

  /** @param directory `<root>/plugins_registry` */
  constructor(deps: PluginRegistryDependencies, directory: string) {
    this.#deps = deps;
    this.#directory = directory;
    this.#wait = new WakeableWait(deps.clock, "a plugin to register");
    this.#watches = new DirectoryWatches(deps.files, (removed) => {
      for (const path of removed) this.#removed.add(path);
      this.#wait.wake();
    });
  }

  /** Present sockets, and whether their plugins are registered. */
  get sockets(): readonly { readonly path: string; readonly isRegistered: boolean }[] {
    return [...this.#registrations.values()].map(({ socket: { path }, plugin }) => {
      return { path, isRegistered: plugin !== undefined };
    });
  }

  /** Sockets whose plugins could not be registered, and why. */
  get refused(): readonly { readonly path: string; readonly problem: string }[] {
    return [...this.#registrations.values()].flatMap(({ socket: { path }, plugin, problem }) => {
      return plugin === undefined && problem !== undefined ? [{ path, problem }] : [];
    });
  }

  /** Watches the directory until the signal aborts, also repeatedly. Rejects only for a defect. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log, files } = this.#deps;
    try {
      await files.makeDirectory(this.#directory, 0o755);
    } catch (error) {
      log.error("cannot create the directory of plugin sockets", { path: this.#directory, error: errorMessage(error) });
    }
    while (!signal.aborted) {
      await this.#look(signal);
      this.#deps.onSockets(this.sockets);
      const nowMs = clock.monotonic();
      const waiting = [...this.#registrations.values()].filter(({ plugin, work }) => plugin === undefined && !work);
      const dueMs = Math.min(...waiting.map(({ retryAtMs }) => retryAtMs), nowMs + rescanMs);
      await this.#wait.for(Math.max(dueMs - nowMs, 0), signal);
    }
    this.#watches[Symbol.dispose]();
    for (const { abort } of this.#registrations.values()) abort.abort(signal.reason);
    await Promise.all([...this.#registrations.values()].flatMap(({ work = [] }) => work));
    // The next run begins with those that are not registered, and compares the sockets of the others.
    for (const [path, { plugin }] of this.#registrations) if (plugin === undefined) this.#registrations.delete(path);
  }

  /**
   * Between two runs: deregisters the plugins that were registered since then. The next run registers them again.
   * @param why in the journal
   */
  drop(sinceMs: number, why: string): void {
    for (const registration of this.#registrations.values()) {
      if ((registration.registeredAtMs ?? 0) >= sinceMs) this.#end(registration, why);
    }
    this.#deps.onSockets(this.sockets);
  }

  async #look(signal: AbortSignal): Promise<void> {
    const removed = new Set(this.#removed);
    this.#removed.clear();
    const { sockets, directories } = await findSockets(this.#deps, this.#directory);
    if (signal.aborted) return;
    // A new directory may have got a socket before its watch started.
    if (this.#watches.set(directories)) this.#wait.wake();
    const found = new Map(sockets.map((socket) => [socket.path, socket]));
    for (const [path, registration] of this.#registrations) {
      const now = found.get(path)?.identity;
      if (now !== registration.socket.identity) {
        this.#end(registration);
        if (now === undefined || removed.has(path)) this.#announced.delete(path);
        else this.#announced.add(path);
      } else if (removed.has(path) && !this.#announced.delete(path)) {
        // Replaced so fast that both have the same identity.
        this.#end(registration);
      }
    }
    const nowMs = this.#deps.clock.monotonic();
    for (const socket of sockets) {
      const known = this.#registrations.get(socket.path) ?? this.#add(socket);
      if (known.plugin === undefined && known.work === undefined && known.retryAtMs <= nowMs) this.#begin(known);
    }
  }

  #add(socket: RegistrationSocket): Registration {
    const registration: Registration = { socket, abort: new AbortController(), failures: 0, retryAtMs: 0 };
    this.#registrations.set(socket.path, registration);
    return registration;
  }

  #begin(registration: Registration): void {
    registration.work = this.#register(registration).finally(() => {
      registration.work = undefined;
      this.#wait.wake();
    });
  }

  async #register(registration: Registration): Promise<void> {
    const { clock, journal, log, handlers, plugins } = this.#deps;
    const { socket, abort } = registration;
    try {
      const plugin = await introduce({ clock, plugins, handlers }, socket.path, abort.signal, (taken) => {
        registration.plugin = taken;
      });
      // The socket may have been removed since the plugin's answer.
      abort.signal.throwIfAborted();
      registration.registeredAtMs = clock.monotonic();
      const { type, name, endpoint } = plugin.info;
      const message = `plugin ${name} (${type}) registered at ${socket.path}`;
      journal.record({ kind: "note", what: "PluginRegistered", message, data: { type, name, endpoint } });
      log.info("plugin registered", { type, name, endpoint, socket: socket.path });
    } catch (error) {
      const taken = registration.plugin;
      delete registration.plugin;
      taken?.handler.deregister(taken.info);
      // The socket was removed meanwhile.
      if (abort.signal.aborted) return;
      this.#failed(registration, errorMessage(error));
    }
  }

  #failed(registration: Registration, problem: string): void {
    const { clock, journal, log } = this.#deps;
    const { path } = registration.socket;
    const retryMs = operationRetryMs(registration.failures);
    registration.failures++;
    registration.problem = problem;
    registration.retryAtMs = clock.monotonic() + retryMs;
    const message = `plugin at ${path} is not registered: ${problem}`;
    journal.record({ kind: "note", what: "PluginRefused", message });
    log.warn("cannot register a plugin", { socket: path, error: problem, retryMs });
  }

  #end(registration: Registration, why = `socket ${registration.socket.path} was removed or replaced`): void {
    const { journal, log } = this.#deps;
    const { socket, abort, plugin } = registration;
    this.#registrations.delete(socket.path);
    abort.abort(new Error(why));
    if (plugin === undefined) return;
    const { type, name } = plugin.info;
    // At once, also if it is being registered: the next socket's plugin must not find it there.
    delete registration.plugin;
    plugin.handler.deregister(plugin.info);
    const message = `plugin ${name} (${type}) deregistered: ${why}`;
    journal.record({ kind: "note", what: "PluginGone", message, data: { type, name } });
    log.info("plugin deregistered", { type, name, socket: socket.path });
  }
}
