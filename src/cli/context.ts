import { resolve } from "node:path";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Compression } from "../ports/compression.ts";
import type { Daemons } from "../ports/daemons.ts";
import { FileError, type Files } from "../ports/files.ts";
import type { Mounts } from "../ports/mounts.ts";
import type { Network } from "../ports/network.ts";
import type { Processes } from "../ports/processes.ts";
import { DEFAULT_STATE_DIRECTORY, type RuntimeLayout, runtimeLayout } from "../private-runtime/layout.ts";
import { EngineClient } from "./engine-client.ts";
import type { Terminal } from "./terminal.ts";

/** What every command of the command line works with. */
export interface CommandContext {
  readonly terminal: Terminal;
  readonly clock: Clock;
  readonly files: Files;
  readonly compression: Compression;
  readonly processes: Processes;
  readonly mounts: Mounts;
  readonly network: Network;
  readonly daemons: Daemons;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly layout: RuntimeLayout;
  /** Talks to the engine of the layout's state directory, whether or not one runs at this moment. */
  readonly engine: EngineClient;
}

/** Flags that every command that knows a state directory takes. */
export interface StateOptions {
  readonly stateDir?: string;
}

/** Opens the real ports. The modules are loaded here, so that `version` and `--help` do without them. */
export async function openContext(terminal: Terminal, options: StateOptions): Promise<CommandContext> {
  const [clock, compression, daemons, files, hashing, mounts, network, processes, proxy, unix] = await Promise.all([
    import("../linux/clock.ts"),
    import("../linux/compression.ts"),
    import("../linux/daemons.ts"),
    import("../linux/files.ts"),
    import("../linux/hashing.ts"),
    import("../linux/mounts.ts"),
    import("../linux/network.ts"),
    import("../linux/processes.ts"),
    import("../kube/proxy.ts"),
    import("../linux/unix-client.ts"),
  ]);
  const environment = process.env;
  // An empty variable is one that is not set; an empty flag is a mistake that would mean the working directory.
  const asked = options.stateDir ?? (environment["PODWRIGHT_STATE_DIR"] || DEFAULT_STATE_DIRECTORY);
  if (asked === "") {
    throw new PodwrightError(ExitCode.badInput, "--state-dir is empty", {
      remedy: "name a directory, or leave it out",
    });
  }
  const stateDirectory = await canonicalPath(files.systemFiles, resolve(asked));
  const layout = runtimeLayout(stateDirectory, hashing.systemHashing);
  return {
    terminal,
    clock: clock.systemClock,
    files: files.systemFiles,
    compression: compression.systemCompression,
    processes: processes.systemProcesses,
    mounts: mounts.systemMounts,
    network: network.openNetwork((url) => proxy.environmentProxy(url, environment)),
    daemons: daemons.systemDaemons,
    environment,
    layout,
    engine: new EngineClient(unix.unixTransport(layout.engineSocket), stateDirectory),
  };
}

/** The path without symbolic links; of what does not exist yet, its nearest existing parent's. */
export async function canonicalPath(files: Files, path: string): Promise<string> {
  let existing = path;
  let rest = "";
  for (;;) {
    try {
      const real = await files.realPath(existing);
      return real === "/" ? rest || "/" : real + rest;
    } catch (error) {
      if (!(error instanceof FileError) || error.code !== "ENOENT" || existing === "/") {
        throw new PodwrightError(ExitCode.badInput, `the state directory ${path} can't be used: ${String(error)}`, {
          remedy: "choose another with --state-dir",
        });
      }
      const slash = existing.lastIndexOf("/");
      rest = existing.slice(slash) + rest;
      existing = existing.slice(0, slash) || "/";
    }
  }
}
