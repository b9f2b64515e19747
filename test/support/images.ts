import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { systemHashing } from "../../src/linux/files/hashing.ts";
import { systemProcesses } from "../../src/linux/processes/processes.ts";
import { tar } from "../../src/private-runtime/tar.ts";
import { patience } from "./patience.ts";
import type { Podwright } from "./podwright.ts";

/** For an archive of some hundred megabytes. */
const importLimitMs = 60_000;

const type = (name: string): string => `application/vnd.oci.image.${name}`;

/** Imports an image into the private runtime with the demo image's busybox and this USER. */
export async function importImageOfUser(podwright: Podwright, reference: string, user: string): Promise<void> {
  const blobs = new Map<string, Uint8Array>();
  const add = (mediaType: string, data: Uint8Array): object => {
    const digest = systemHashing.sha256(data);
    blobs.set(digest, data);
    return { mediaType: type(mediaType), digest: `sha256:${digest}`, size: data.length };
  };
  const json = (value: unknown): Uint8Array => Buffer.from(JSON.stringify(value));
  const link = (name: string) => ({ path: `bin/${name}`, type: "symlink", mode: 0o777, target: "busybox" }) as const;
  const layer = tar([
    { path: "bin", type: "directory", mode: 0o755 },
    { path: "bin/busybox", type: "file", mode: 0o755, data: await readFile("/bin/busybox") },
    ...["sh", "id", "sleep"].map(link),
  ]);
  const layers = [add("layer.v1.tar", layer)];
  const config = add(
    "config.v1+json",
    json({
      architecture: process.arch === "x64" ? "amd64" : process.arch,
      os: "linux",
      config: { User: user, Env: ["PATH=/bin"] },
      rootfs: { type: "layers", diff_ids: [`sha256:${systemHashing.sha256(layer)}`] },
    }),
  );
  const manifest = add(
    "manifest.v1+json",
    json({ schemaVersion: 2, mediaType: type("manifest.v1+json"), config, layers }),
  );
  const file = (path: string, data: Uint8Array) => ({ path, type: "file", mode: 0o644, data }) as const;
  const archive = tar([
    file("oci-layout", json({ imageLayoutVersion: "1.0.0" })),
    file(
      "index.json",
      json({
        schemaVersion: 2,
        manifests: [{ ...manifest, annotations: { "io.containerd.image.name": reference } }],
      }),
    ),
    ...[...blobs].map(([digest, data]) => file(`blobs/sha256/${digest}`, data)),
  ]);
  const path = podwright.path("image.tar");
  await writeFile(path, archive);
  await importImages(podwright, path);
  await rm(path);
}

/** Imports the images of an archive into the private runtime. @param path absolute */
export async function importImages({ layout, runtime }: Podwright, path: string): Promise<void> {
  const ctr = join(runtime.binDirectory, "ctr");
  const words = ["-a", layout.containerd.socket, "-n", "k8s.io", "images", "import", path];
  const { exitCode, stderr } = await systemProcesses.run(ctr, words, { timeoutMs: importLimitMs * patience });
  if (exitCode !== 0) throw new Error(`ctr images import ${path}: ${stderr}`);
}
