import { resolve } from "node:path";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import { systemClock } from "../linux/processes/clock.ts";
import { systemFiles } from "../linux/files/files.ts";
import { systemHashing } from "../linux/files/hashing.ts";
import { unixTransport } from "../linux/http/unix-client.ts";
import type { Clock } from "../ports/clock.ts";
import type { Files } from "../ports/files.ts";
import { canonicalPath } from "../private-runtime/canonical-path.ts";
import { DEFAULT_STATE_DIRECTORY, type RuntimeLayout, runtimeLayout } from "../private-runtime/layout.ts";
import { EngineClient } from "./engine-client.ts";
import { stateOwner } from "./state-owner.ts";
import type { Terminal } from "./terminal.ts";

/** The ports and places that every command uses. */
export interface CommandContext {
  readonly terminal: Terminal;
  readonly clock: Clock;
  readonly files: Files;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly layout: RuntimeLayout;
  /** Calls the engine of the layout's state directory, whether or not one is running. */
  readonly engine: EngineClient;
}

/** Options of every command with a state directory. */
export interface StateOptions {
  readonly stateDir?: string;
}

/** Opens the real ports. */
export async function openContext(terminal: Terminal, options: StateOptions): Promise<CommandContext> {
  const environment = process.env;
  // An empty variable counts as unset. An empty option is a mistake: it would mean the working directory.
  const asked = options.stateDir ?? (environment["PODWRIGHT_STATE_DIR"] || DEFAULT_STATE_DIRECTORY);
  if (asked === "") {
    throw new PodwrightError(ExitCode.badInput, "--state-dir is empty", {
      remedy: "set it to a directory, or omit it",
    });
  }
  const stateDirectory = await canonicalPath(systemFiles, resolve(asked));
  const layout = runtimeLayout(stateDirectory, systemHashing);
  const owner = await stateOwner(systemFiles, layout);
  return {
    terminal,
    clock: systemClock,
    files: systemFiles,
    environment,
    layout,
    engine: new EngineClient(unixTransport(layout.engineSocket), stateDirectory, undefined, owner),
  };
}
