import { type ChildProcess, spawn } from "node:child_process";
import { mkdir, mkdtemp, rename, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemHashing } from "../../src/linux/files/hashing.ts";
import { serveUnix } from "../../src/linux/servers/unix-server.ts";
import type { ApiServer } from "../../src/ports/api-server.ts";
import { type RuntimeLayout, runtimeLayout } from "../../src/private-runtime/layout.ts";
import type { LocalApi } from "../../src/server/local-api.ts";
import { localApiRoutes } from "../../src/server/routes.ts";
import { FakeEngine, type FakeLife } from "./fake-engine.ts";
import { ownEnvironment, ownProgram } from "./program.ts";
import { patience } from "./patience.ts";
import { removeDirectories } from "./traces.ts";

export interface CommandEnd {
  readonly exitCode: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

/** A running `podwright` command. */
export class RunningCommand {
  readonly child: ChildProcess;
  readonly ended: Promise<CommandEnd>;
  stdout = "";
  stderr = "";

  /** @param stdin all of its input; undefined: the test writes it later */
  constructor(child: ChildProcess, stdin: string | undefined) {
    this.child = child;
    child.stdout?.setEncoding("utf8").on("data", (text: string) => (this.stdout += text));
    child.stderr?.setEncoding("utf8").on("data", (text: string) => (this.stderr += text));
    child.stdin?.on("error", () => {});
    if (stdin !== undefined) child.stdin?.end(stdin);
    this.ended = new Promise((done) => {
      child.once("close", (exitCode) => {
        done({ exitCode: exitCode ?? undefined, stdout: this.stdout, stderr: this.stderr });
      });
    });
  }

  /** Waits until the output matches. */
  async prints(pattern: RegExp, limitMs = 60_000): Promise<void> {
    const limit = performance.now() + limitMs * patience;
    while (performance.now() < limit) {
      if (pattern.test(this.stdout + this.stderr)) return;
      await new Promise((done) => setTimeout(done, 50));
    }
    throw new Error(`never printed ${String(pattern)}; printed:\n${this.stdout}\n${this.stderr}`);
  }
}

/** A state directory, with or without an engine, and `podwright` commands on it as child processes. */
export class CommandBench implements AsyncDisposable {
  readonly layout: RuntimeLayout;
  #server: ApiServer | undefined;
  readonly #commands: RunningCommand[] = [];

  constructor(layout: RuntimeLayout) {
    this.layout = layout;
  }

  static async open(): Promise<CommandBench> {
    const directory = await mkdtemp(join(tmpdir(), "podwright-cli-"));
    return new CommandBench(runtimeLayout(directory, systemHashing));
  }

  async serve(engine: LocalApi): Promise<void> {
    await mkdir(this.layout.runDirectory, { recursive: true, mode: 0o700 });
    this.#server = await serveUnix(this.layout.engineSocket, localApiRoutes(engine), { closeGraceMs: 100 });
  }

  /**
   * Replaces the engine without a gap and breaks its connections, as when it dies and is restarted. (In a gap the
   * commands would start a real engine.)
   */
  async replace(engine: LocalApi): Promise<void> {
    const path = `${this.layout.runDirectory}/next.sock`;
    const next = await serveUnix(path, localApiRoutes(engine), { closeGraceMs: 100 });
    await rename(path, this.layout.engineSocket);
    await this.#server?.close();
    this.#server = next;
  }

  start(arguments_: readonly string[], stdin = ""): RunningCommand {
    const { NO_COLOR: _noColor, ...inherited } = ownEnvironment();
    const environment = { ...inherited, PODWRIGHT_STATE_DIR: this.layout.stateDirectory };
    const [program = "", ...words] = [...ownProgram, ...arguments_];
    const child = spawn(program, words, { env: environment, stdio: ["pipe", "pipe", "pipe"] });
    const command = new RunningCommand(child, stdin);
    this.#commands.push(command);
    return command;
  }

  async run(arguments_: readonly string[], stdin = ""): Promise<CommandEnd> {
    return this.start(arguments_, stdin).ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { child } of this.#commands) child.kill("SIGKILL");
    await Promise.all(this.#commands.map((command) => command.ended));
    await this.#server?.close();
    await removeDirectories(this.layout);
  }
}

/** A pod `web` with a container `app`. */
export const webManifest = `
apiVersion: v1
kind: Pod
metadata: { name: web }
spec:
  containers: [{ name: app, image: "podwright.local/demo:1" }]
`;

/** Passes a bench to the work, with an engine whose pods are given; {@link webManifest} is at the path. */
export async function withEngine(
  life: Partial<FakeLife>,
  work: (bench: CommandBench, engine: FakeEngine, path: string) => Promise<void>,
): Promise<void> {
  await using bench = await CommandBench.open();
  const engine = new FakeEngine(life);
  await bench.serve(engine);
  const path = join(bench.layout.stateDirectory, "web.yaml");
  await writeFile(path, webManifest);
  try {
    await work(bench, engine, path);
  } finally {
    engine.end();
  }
}
