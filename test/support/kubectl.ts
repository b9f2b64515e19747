import { execFile, spawn, type ChildProcess, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { resolve } from "node:path";
import { Readable } from "node:stream";
import { promisify } from "node:util";
import { PtyCommand } from "./pty.ts";

const fetched = resolve(import.meta.dirname, "../../.cache/runtimes/sid/usr/bin/kubectl");
/** Every kubectl of this machine, newest first. */
export const kubectls = [fetched, "kubectl"].filter((each) => spawnSync(each, ["version", "--client"]).status === 0);

/** The reason to skip without kubectl; false when there is one. */
export const noKubectl = kubectls.length === 0 ? "no kubectl here: sh scripts/fetch-runtimes.sh sid fetches it" : false;

export interface KubectlEnd {
  readonly code: number;
  readonly stdout: Buffer;
  readonly stderr: string;
}

/** The real kubectl, with a configuration. */
export class Kubectl {
  readonly #environment: NodeJS.ProcessEnv;
  readonly #program: string;

  /** @param more of the environment */
  constructor(kubeconfig: string, home: string, program: string = kubectls[0] ?? "", more: NodeJS.ProcessEnv = {}) {
    this.#environment = { ...process.env, KUBECONFIG: kubeconfig, HOME: home, ...more };
    this.#program = program;
  }

  start(...words: readonly string[]): ChildProcess {
    return spawn(this.#program, words, { env: this.#environment, stdio: ["pipe", "pipe", "pipe"] });
  }

  /** On a pseudo terminal. */
  startOnTerminal(...words: readonly string[]): PtyCommand {
    return new PtyCommand([this.#program, ...words], this.#environment);
  }

  /** Standard output of a command that has to succeed. */
  async succeed(...words: readonly string[]): Promise<string> {
    return (await promisify(execFile)(this.#program, words, { env: this.#environment, maxBuffer: 1 << 28 })).stdout;
  }

  /** @param input the command's input; default: empty */
  async run(words: readonly string[], input?: Uint8Array): Promise<KubectlEnd> {
    const child = this.start(...words);
    const out: Buffer[] = [];
    let stderr = "";
    child.stdout?.on("data", (chunk: Buffer) => out.push(chunk));
    child.stderr?.on("data", (chunk: Buffer) => (stderr += chunk.toString("utf8")));
    child.stdin?.on("error", () => {});
    child.stdin?.end(input ?? "");
    const { promise, resolve: end } = Promise.withResolvers<number>();
    child.once("close", (code) => end(code ?? -1));
    return { code: await promise, stdout: Buffer.concat(out), stderr };
  }

  /** Runs a command with any amount of input; returns digest and size of its output. */
  async digest(words: readonly string[], input: AsyncIterable<Uint8Array>): Promise<{ sha256: string; bytes: number }> {
    const child = this.start(...words);
    const hash = createHash("sha256");
    let bytes = 0;
    child.stdout?.on("data", (chunk: Buffer) => {
      hash.update(chunk);
      bytes += chunk.length;
    });
    child.stderr?.pipe(process.stderr, { end: false });
    child.stdin?.on("error", () => {});
    if (child.stdin) Readable.from(input).pipe(child.stdin);
    const { promise, resolve: end } = Promise.withResolvers<number>();
    child.once("close", (code) => end(code ?? -1));
    const code = await promise;
    if (code !== 0) throw new Error(`kubectl ${words.join(" ")} ended with ${code}`);
    return { sha256: hash.digest("hex"), bytes };
  }
}
