import { execFile, spawn, type ChildProcess, spawnSync } from "node:child_process";
import { resolve } from "node:path";
import { promisify } from "node:util";

const fetched = resolve(import.meta.dirname, "../../.cache/runtimes/sid/usr/bin/kubectl");
const program = [fetched, "kubectl"].find((each) => spawnSync(each, ["version", "--client"]).status === 0);

/** Why there is no kubectl, for `skip`; false when there is one. */
export const noKubectl = program === undefined ? "no kubectl here: sh scripts/fetch-runtimes.sh sid fetches it" : false;

export interface KubectlEnd {
  readonly code: number;
  readonly stdout: Buffer;
  readonly stderr: string;
}

/** The real kubectl, with a configuration. */
export class Kubectl {
  readonly #environment: NodeJS.ProcessEnv;

  constructor(kubeconfig: string, home: string) {
    this.#environment = { ...process.env, KUBECONFIG: kubeconfig, HOME: home };
  }

  start(...words: readonly string[]): ChildProcess {
    return spawn(program ?? "", words, { env: this.#environment, stdio: ["pipe", "pipe", "pipe"] });
  }

  /** Standard output of a command that has to succeed. */
  async succeed(...words: readonly string[]): Promise<string> {
    return (await promisify(execFile)(program ?? "", words, { env: this.#environment, maxBuffer: 1 << 28 })).stdout;
  }

  /** @param input what the command reads; nothing unless given */
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
}
