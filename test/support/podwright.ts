import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { JournalEntry } from "../../src/journal/entry.ts";
import { defaultJournalLimits } from "../../src/journal/journal.ts";
import { SegmentLog } from "../../src/journal/segments.ts";
import { connectCri } from "../../src/cri/client.ts";
import { systemClock } from "../../src/linux/processes/clock.ts";
import { EngineClient } from "../../src/cli/engine-client.ts";
import { systemDaemons } from "../../src/linux/processes/daemons.ts";
import { systemFiles } from "../../src/linux/files/files.ts";
import { systemHashing } from "../../src/linux/files/hashing.ts";
import { systemMounts } from "../../src/linux/files/mounts.ts";
import { systemProcesses } from "../../src/linux/processes/processes.ts";
import type { Cri } from "../../src/ports/cri.ts";
import { unixTransport } from "../../src/linux/http/unix-client.ts";
import { findContainerd } from "../../src/private-runtime/containerd-process.ts";
import { type RuntimeLayout, runtimeLayout } from "../../src/private-runtime/layout.ts";
import { stopPrivateRuntime } from "../../src/private-runtime/stop.ts";
import type { ContainerView, PodView } from "../../src/server/local-api.ts";
import { type CommandEnd, RunningCommand } from "./command.ts";
import { machine } from "./machine.ts";
import { patience } from "./patience.ts";
import { ownEnvironment, ownProgram } from "./program.ts";
import { PtyCommand } from "./pty.ts";
import { runtimeUnderTest, type TestRuntime } from "./runtimes.ts";
import { cgroupsOf, journaledUids, mountsOf, processesOf, removeDirectories, removeLogs, tracesOf } from "./traces.ts";

const root = resolve(import.meta.dirname, "../..");
const prefix = "podwright-it-";
/** From the last pod's end to containerd's: the engine waits for other pods, containerd stops its plugins. */
const ownEndMs = 30_000;
/** Instances to clean up when this process gets a signal. */
const open = new Set<Podwright>();

interface CommandOptions {
  /** All of its input. */
  readonly stdin?: string;
  /** The test writes its input later. */
  readonly keepsStdin?: true;
  /** A command that runs podwright's command line, e.g. as another user. */
  readonly through?: readonly string[];
}

/** The real podwright with its own state directory: commands as child processes, an engine, a private containerd. */
export class Podwright {
  readonly layout: RuntimeLayout;
  readonly runtime: TestRuntime;
  readonly #commands: RunningCommand[] = [];

  private constructor(layout: RuntimeLayout, runtime: TestRuntime) {
    this.layout = layout;
    this.runtime = runtime;
  }

  static async open(runtime = runtimeUnderTest()): Promise<Podwright> {
    await removeAbandoned();
    const directory = await mkdtemp(join(tmpdir(), `${prefix}${process.pid}-`));
    const podwright = new Podwright(runtimeLayout(directory, systemHashing), runtime);
    open.add(podwright);
    return podwright;
  }

  /** A path in the state directory, for other files of a test. */
  path(name: string): string {
    return join(this.layout.stateDirectory, name);
  }

  /** Writes a manifest and returns its path. */
  async manifest(name: string, text: string): Promise<string> {
    const path = this.path(name);
    await writeFile(path, text);
    return path;
  }

  get #environment(): NodeJS.ProcessEnv {
    const { NO_COLOR: _noColor, PATH = "", ...inherited } = ownEnvironment();
    const path = `${this.runtime.binDirectory}:${PATH}`;
    return { ...inherited, PATH: path, PODWRIGHT_STATE_DIR: this.layout.stateDirectory };
  }

  /** On a pseudo terminal. @param through as of {@link CommandOptions} */
  startOnTerminal(arguments_: readonly string[], through: readonly string[] = []): PtyCommand {
    return new PtyCommand([...through, ...ownProgram, ...arguments_], this.#environment);
  }

  start(arguments_: readonly string[], options: CommandOptions = {}): RunningCommand {
    const [program = "", ...words] = [...(options.through ?? []), ...ownProgram, ...arguments_];
    const child = spawn(program, words, { cwd: root, env: this.#environment, stdio: ["pipe", "pipe", "pipe"] });
    const command = new RunningCommand(child, options.keepsStdin ? undefined : (options.stdin ?? ""));
    this.#commands.push(command);
    return command;
  }

  async run(arguments_: readonly string[], options: CommandOptions = {}): Promise<CommandEnd> {
    return this.start(arguments_, options).ended;
  }

  /** Runs a command that has to succeed; returns its output. */
  async succeed(...arguments_: readonly string[]): Promise<string> {
    const { exitCode, stdout, stderr } = await this.run(arguments_);
    if (exitCode !== 0) throw new Error(`podwright ${arguments_.join(" ")} ended with ${exitCode}: ${stdout}${stderr}`);
    return stdout;
  }

  /**
   * As in `ps --json`; queried in this process, because starting a program repeatedly would slow down what is waited
   * for.
   */
  async pods(): Promise<PodView[]> {
    try {
      return [...(await this.#client.pods())];
    } catch {
      // Without an engine, or while it exits, the command knows more.
      return (JSON.parse(await this.succeed("ps", "--json")) as { pods: PodView[] }).pods;
    }
  }

  async pod(name: string): Promise<PodView> {
    const pod = (await this.pods()).find((candidate) => candidate.name === name && candidate.state === "syncing");
    if (pod === undefined) throw new Error(`ps does not list ${name}`);
    return pod;
  }

  async container(podName: string, name: string): Promise<ContainerView> {
    const found = (await this.pod(podName)).containers.find((container) => container.name === name);
    if (found === undefined) throw new Error(`pod ${podName} has no container ${name}`);
    return found;
  }

  /** Polls until the pods are as expected. */
  async waitFor(what: string, isSo: (pods: PodView[]) => boolean, limitMs = 60_000): Promise<PodView[]> {
    let last: PodView[] = [];
    await until(
      () => `${what}; ps shows ${JSON.stringify(last, undefined, 1)}`,
      async () => {
        last = await this.pods();
        return isSo(last);
      },
      limitMs,
    );
    return last;
  }

  /** All journal entries: the engine's, or, without one, those on disk. */
  async journal(): Promise<readonly JournalEntry[]> {
    if ((await this.enginePid()) !== undefined) {
      try {
        return await this.#client.entries({});
      } catch (error) {
        // It may be exiting, because it has no pods.
        await until("the engine to end", async () => (await this.enginePid()) === undefined).catch(() => {
          throw error;
        });
      }
    }
    return this.journalOnDisk();
  }

  /** The number of the newest journal entry; 0 without entries. */
  async lastSeq(): Promise<number> {
    return (await this.journal()).at(-1)?.seq ?? 0;
  }

  /** The entries that a kill of the engine would leave. */
  async journalOnDisk(): Promise<readonly JournalEntry[]> {
    if (!existsSync(this.layout.journal)) return [];
    const log = new SegmentLog(systemFiles, this.layout.journal, defaultJournalLimits);
    return (await log.open(defaultJournalLimits.maxEntries)).entries;
  }

  async answers(): Promise<boolean> {
    return await engineAnswers(this.#client);
  }

  get #client(): EngineClient {
    const { engineSocket, stateDirectory } = this.layout;
    return new EngineClient(unixTransport(engineSocket), stateDirectory);
  }

  connect(): Cri & Disposable {
    return connectCri(this.layout.containerd.endpoint, systemClock);
  }

  /** The pid of a container's init process. */
  async firstProcess(containerId: string): Promise<number> {
    using cri = this.connect();
    return pidOf((await cri.runtime.containerStatus({ containerId, verbose: true })).info);
  }

  /** The pid of the process that holds a sandbox's namespaces. */
  async firstProcessOfSandbox(podSandboxId: string): Promise<number> {
    using cri = this.connect();
    return pidOf((await cri.runtime.podSandboxStatus({ podSandboxId, verbose: true })).info);
  }

  /** Removes a pod's sandbox from the runtime, as somebody else might. */
  async removeSandbox(uid: string): Promise<void> {
    using cri = this.connect();
    const { items } = await cri.runtime.listPodSandbox({}, { timeoutMs: 20_000 * patience });
    for (const { id, metadata } of items) {
      if (metadata?.uid !== uid) continue;
      await cri.runtime.stopPodSandbox({ podSandboxId: id }, { timeoutMs: 20_000 * patience });
      await cri.runtime.removePodSandbox({ podSandboxId: id }, { timeoutMs: 20_000 * patience });
    }
  }

  async containerdPid(): Promise<number | undefined> {
    return findContainerd(systemProcesses, this.layout);
  }

  async enginePid(): Promise<number | undefined> {
    return (await processesOf(this.layout)).find(({ command }) => command.includes(" engine --state-dir "))?.pid;
  }

  /** kill -9, and waits for the exit. */
  async kill(pid: number | undefined): Promise<void> {
    if (pid === undefined) throw new Error("there is no such process to be killed");
    systemProcesses.kill(pid, "SIGKILL");
    await until(`process ${pid} to die`, async () => !systemProcesses.isAlive(pid));
  }

  /** Restarts containerd as the engine did. @param commandLine of the previous one */
  async startContainerd(commandLine: readonly string[]): Promise<void> {
    const [program, ...arguments_] = commandLine;
    if (program === undefined) throw new Error("containerd's command line is unknown");
    const path = process.env["PATH"] ?? "";
    await systemDaemons.start({
      program,
      arguments: arguments_,
      logPath: this.layout.containerd.log,
      environment: { PATH: `${this.runtime.binDirectory}:${path}` },
      workingDirectory: "/",
    });
  }

  /** Stops everything, waits for the engine and containerd to exit by themselves, and fails if anything is left. */
  async expectNothingLeft(): Promise<void> {
    const uids = await journaledUids(this.layout);
    const left = await this.#podsOfEngine();
    if (left.length > 0) await this.succeed("stop", "--grace", "0", ...left.map(({ uid }) => uid));
    await until(
      () => "the engine and containerd to end by themselves",
      async () => (await this.enginePid()) === undefined && (await this.containerdPid()) === undefined,
      ownEndMs,
    );
    const traces = await tracesOf(this.layout, new Set([...uids, ...(await journaledUids(this.layout))]));
    if (traces.length > 0) throw new Error(`left on the machine:\n${traces.join("\n")}`);
  }

  /** Empty for an engine that is exiting, or has exited. */
  async #podsOfEngine(): Promise<readonly PodView[]> {
    let pods: readonly PodView[] = [];
    await until("the engine to answer or to be gone", async () => {
      if ((await this.enginePid()) === undefined) return true;
      const seen = await this.#client.pods().catch(() => undefined);
      pods = seen ?? [];
      return seen !== undefined;
    });
    return pods;
  }

  /** In any case: stops its programs and removes its files. */
  async cleanUp(): Promise<void> {
    for (const { child } of this.#commands) child.kill("SIGKILL");
    await Promise.all(this.#commands.map((command) => command.ended));
    await removeEverything(this.layout);
    open.delete(this);
  }

  /** Diagnostics for a failure. */
  async evidence(): Promise<string> {
    const tail = async (path: string): Promise<string> => {
      const text = await readFile(path, "utf8").catch(() => "");
      return text === "" ? "" : `--- ${path}\n${text.slice(-3000)}`;
    };
    const entries = (await this.journalOnDisk()).slice(-40);
    const lines = entries.map(({ time, what, pod, container = "", message }) => {
      return `${new Date(time).toISOString().slice(11, 23)} ${pod?.name ?? ""} ${container} ${what}: ${message}`;
    });
    const logs = await Promise.all([`${this.layout.stateDirectory}/engine.log`, this.layout.containerd.log].map(tail));
    return [`containerd ${this.runtime.version} (${this.runtime.name})`, ...lines, ...logs].join("\n");
  }
}

/** Passes a podwright to the work, checks that it leaves nothing on the machine, and cleans up in any case. */
export async function withPodwright(
  work: (podwright: Podwright) => Promise<void>,
  runtime: TestRuntime = runtimeUnderTest(),
): Promise<void> {
  const podwright = await Podwright.open(runtime);
  try {
    await work(podwright);
    await podwright.expectNothingLeft();
  } catch (error) {
    console.error(await podwright.evidence());
    throw error;
  } finally {
    await podwright.cleanUp();
  }
}

/** Whether the engine responds on its socket. */
export async function engineAnswers(client: EngineClient): Promise<boolean> {
  return await client.health().then(
    () => true,
    () => false,
  );
}

/** Waits for a condition; errors count as false. The name is for the error. */
export async function until(
  what: string | (() => string),
  isSo: () => Promise<boolean>,
  limitMs = 30_000,
): Promise<void> {
  const limit = Date.now() + limitMs * patience;
  let cause: unknown;
  const asked = async (): Promise<boolean> => {
    try {
      return await isSo();
    } catch (error) {
      cause = error;
      return false;
    }
  };
  while (!(await asked())) {
    if (Date.now() > limit) {
      throw new Error(`waited ${limitMs * patience} ms for ${typeof what === "string" ? what : what()}`, { cause });
    }
    await sleep(50);
  }
}

export async function sleep(ms: number): Promise<void> {
  await new Promise((done) => setTimeout(done, ms));
}

/** containerd's verbose responses contain JSON. */
function pidOf(info: Readonly<Record<string, string>>): number {
  const { pid } = JSON.parse(info["info"] ?? "{}") as { readonly pid?: number };
  if (pid === undefined || pid <= 0) throw new Error("the runtime names no process");
  return pid;
}

/** Stops the engine and containerd, every pod, and removes mounts, interface, cgroups, logs and directories. */
async function removeEverything(layout: RuntimeLayout): Promise<void> {
  const uids = await journaledUids(layout);
  for (const { pid, command } of await processesOf(layout)) {
    if (command.includes(" engine --state-dir ")) systemProcesses.kill(pid, "SIGKILL");
  }
  // containerd itself releases addresses, firewall rules and namespaces.
  if ((await findContainerd(systemProcesses, layout)) !== undefined) await removeSandboxes(layout);
  for (const { pid } of await processesOf(layout)) systemProcesses.kill(pid, "SIGKILL");
  await until("processes to end", async () => (await processesOf(layout)).length === 0).catch(() => {});
  await stopPrivateRuntime(machine, layout, { busybox: "/bin/busybox", iptables: "/usr/sbin/iptables" });
  for (const path of await cgroupsOf(layout)) await machine.cgroups.remove(path).catch(() => {});
  for (const target of (await mountsOf(layout)).toReversed()) await systemMounts.unmount(target, { lazy: true });
  await removeLogs(uids);
  await removeDirectories(layout);
}

async function removeSandboxes(layout: RuntimeLayout): Promise<void> {
  using cri = connectCri(layout.containerd.endpoint, systemClock);
  const options = { timeoutMs: 20_000 * patience };
  const { items } = await cri.runtime.listPodSandbox({}, options).catch(() => ({ items: [] }));
  await Promise.allSettled(
    items.map(async ({ id }) => {
      await cri.runtime.stopPodSandbox({ podSandboxId: id }, options);
      await cri.runtime.removePodSandbox({ podSandboxId: id }, options);
    }),
  );
}

/** State directories of test processes that were killed before their clean-up. */
async function removeAbandoned(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const pid = Number(new RegExp(`^${prefix}(\\d+)-`).exec(name)?.[1]);
    if (Number.isNaN(pid) || systemProcesses.isAlive(pid)) continue;
    await removeEverything(runtimeLayout(join(tmpdir(), name), systemHashing)).catch(() => {});
  }
}

/** The runner ends a slow file by SIGTERM and waits a moment: what was started must not outlive it. */
async function endOnSignal(): Promise<never> {
  await Promise.allSettled([...open].map((podwright) => podwright.cleanUp()));
  process.exit(1);
}
for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => void endOnSignal());
