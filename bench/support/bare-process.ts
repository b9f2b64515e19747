import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { build } from "esbuild";
import type { RuntimeLayout } from "../../src/private-runtime/layout.ts";
import { mallocSettings, nodeFlags } from "../../scripts/launch.ts";
import { processUsage, type Usage } from "./usage.ts";

/**
 * A bare client (bare-rest.ts, bare-statuses.ts, bare-burst.ts) in its own process, bundled and with podwright's
 * settings.
 */
export class BareProcess implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #ready: Promise<unknown>;

  constructor(child: ChildProcess) {
    this.#child = child;
    const early = once(child, "exit").then(([code]) => {
      throw new Error(`the bare client ended with ${code ?? "a signal"}`);
    });
    this.#ready = Promise.race([once(child, "message"), early]);
    this.#ready.catch(() => {});
    early.catch(() => {});
  }

  /** @throws Error if it exited instead */
  async ready(): Promise<void> {
    await this.#ready;
  }

  async usage(): Promise<Usage> {
    return await processUsage(this.#child.pid ?? 0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, "exit");
    this.#child.kill("SIGTERM");
    await ended;
  }
}

type BareClient = "bare-rest" | "bare-statuses" | "bare-burst";

export async function startBareClient(
  layout: RuntimeLayout,
  name: BareClient,
  args: readonly string[],
): Promise<BareProcess> {
  return new BareProcess(await forkBareClient(layout, name, args));
}

/** The process alone; it sends `ready` to its parent. */
export async function forkBareClient(
  layout: RuntimeLayout,
  name: BareClient,
  args: readonly string[],
): Promise<ChildProcess> {
  const program = join(layout.stateDirectory, `${name}.mjs`);
  await build({
    entryPoints: [join(import.meta.dirname, `${name}.ts`)],
    outfile: program,
    bundle: true,
    format: "esm",
    platform: "node",
    minifyWhitespace: true,
    // CommonJS dependencies require() Node.js' own modules.
    banner: {
      js: 'import { createRequire as __createRequire } from "node:module"; const require = __createRequire(import.meta.url);',
    },
    logLevel: "warning",
  });
  const child = fork(program, args, {
    execArgv: [...nodeFlags],
    env: { ...process.env, ...mallocSettings },
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  await once(child, "spawn");
  return child;
}
