import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { tar } from "../../src/private-runtime/tar.ts";
import { freePort } from "./free-port.ts";

const program = "/usr/bin/docker-registry";
const mediaTypes = {
  manifest: "application/vnd.oci.image.manifest.v1+json",
  config: "application/vnd.oci.image.config.v1+json",
  layer: "application/vnd.oci.image.layer.v1.tar+gzip",
} as const;

/** The user of a private registry; the hash is of the password. */
export const registryUser = {
  name: "puller",
  password: "s3cret-pass",
  bcrypt: "$2b$05$abcdefghijklmnopqrstuuV7fpPozvyqJfnY19y0802WTlXUm6Rjy",
} as const;

/** `docker login`'s file for the user of a private registry, or of a part of it. */
export function dockerConfig(...places: readonly string[]): string {
  const auth = Buffer.from(`${registryUser.name}:${registryUser.password}`).toString("base64");
  return JSON.stringify({ auths: Object.fromEntries(places.map((place) => [place, { auth }])) });
}

/** Debian's docker-registry on loopback, with its own port and directory. */
export class Registry implements AsyncDisposable {
  /** `127.0.0.1:<port>`, the first part of its images' names. */
  readonly address: string;
  readonly #stop: () => Promise<void>;
  readonly #headers: Readonly<Record<string, string>>;

  private constructor(address: string, headers: Readonly<Record<string, string>>, stop: () => Promise<void>) {
    this.address = address;
    this.#headers = headers;
    this.#stop = stop;
  }

  /** @param access private: only {@link registryUser} may pull and push */
  static async start(access: "open" | "private" = "open"): Promise<Registry> {
    const directory = await mkdtemp(join(tmpdir(), "podwright-registry-"));
    const address = `127.0.0.1:${await freePort()}`;
    const config = join(directory, "config.yaml");
    await writeFile(
      config,
      JSON.stringify({
        version: 0.1,
        log: { level: "error", accesslog: { disabled: true } },
        storage: { filesystem: { rootdirectory: join(directory, "data") } },
        http: { addr: address },
        ...(access === "private" && { auth: { htpasswd: { realm: "test", path: join(directory, "htpasswd") } } }),
      }),
    );
    await writeFile(join(directory, "htpasswd"), `${registryUser.name}:${registryUser.bcrypt}\n`, { mode: 0o600 });
    const child = spawn(program, ["serve", config], { stdio: ["ignore", "ignore", "pipe"] });
    let log = "";
    child.stderr.on("data", (chunk: Buffer) => (log += chunk.toString()));
    const pair = Buffer.from(`${registryUser.name}:${registryUser.password}`).toString("base64");
    const headers: Record<string, string> = access === "private" ? { authorization: `Basic ${pair}` } : {};
    const registry = new Registry(address, headers, async () => {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill("SIGKILL");
        await once(child, "exit");
      }
      await rm(directory, { recursive: true, force: true });
    });
    try {
      await registry.#answers(() => child.exitCode !== null);
      return registry;
    } catch (error) {
      await registry.#stop();
      throw new Error(`docker-registry did not get ready; it said:\n${log}`, { cause: error });
    }
  }

  /** Pushes an image of one layer with one file, `/content`; returns its full name. */
  async push(repository: string, tag: string, content: string | Buffer, user?: string): Promise<string> {
    return await this.#pushFile(repository, tag, { path: "content", data: Buffer.from(content), user });
  }

  /** The same with the program `/busybox`, which behaves according to its name. */
  async pushProgram(repository: string, tag: string, user?: string): Promise<string> {
    return await this.#pushFile(repository, tag, { path: "busybox", data: await readFile("/bin/busybox"), user });
  }

  async #pushFile(
    repository: string,
    tag: string,
    { path, data, user }: { readonly path: string; readonly data: Buffer; readonly user: string | undefined },
  ): Promise<string> {
    const layer = tar([{ path, type: "file", mode: 0o755, data }]);
    const config = {
      architecture: process.arch === "x64" ? "amd64" : process.arch,
      os: "linux",
      config: { User: user },
      rootfs: { type: "layers", diff_ids: [digestOf(layer)] },
    };
    const manifest = {
      schemaVersion: 2,
      mediaType: mediaTypes.manifest,
      config: await this.#pushBlob(repository, mediaTypes.config, Buffer.from(JSON.stringify(config))),
      layers: [await this.#pushBlob(repository, mediaTypes.layer, gzipSync(layer))],
    };
    await this.#put(
      `http://${this.address}/v2/${repository}/manifests/${tag}`,
      mediaTypes.manifest,
      JSON.stringify(manifest),
    );
    return `${this.address}/${repository}:${tag}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stop();
  }

  async #pushBlob(repository: string, mediaType: string, data: Buffer): Promise<object> {
    const digest = digestOf(data);
    const begun = await fetch(`http://${this.address}/v2/${repository}/blobs/uploads/`, {
      method: "POST",
      headers: this.#headers,
    });
    const location = new URL(begun.headers.get("location") ?? "", begun.url);
    location.searchParams.set("digest", digest);
    await this.#put(location.href, "application/octet-stream", data);
    return { mediaType, digest, size: data.length };
  }

  async #put(url: string, contentType: string, body: string | Buffer): Promise<void> {
    const data = typeof body === "string" ? body : new Uint8Array(body);
    const response = await fetch(url, {
      method: "PUT",
      headers: { ...this.#headers, "content-type": contentType },
      body: data,
    });
    if (!response.ok) throw new Error(`PUT ${url}: ${response.status} ${await response.text()}`);
  }

  async #answers(hasEnded: () => boolean): Promise<void> {
    const giveUpMs = performance.now() + 20_000;
    for (;;) {
      try {
        await fetch(`http://${this.address}/v2/`);
        return;
      } catch (error) {
        if (hasEnded() || performance.now() > giveUpMs) throw error;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
  }
}

function digestOf(data: Uint8Array): string {
  return `sha256:${createHash("sha256").update(data).digest("hex")}`;
}
