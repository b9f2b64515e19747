import type { Hashing } from "../ports/hashing.ts";
import { tar } from "./tar.ts";
import type { TarEntry } from "./tar.ts";

/** An image of one layer. */
export interface OciImage {
  /** Full reference, e.g. `podwright.local/pause:1`. */
  readonly reference: string;
  /** Names of Go's GOARCH, as OCI has them: `amd64`, `arm64` … */
  readonly architecture: string;
  readonly files: readonly TarEntry[];
  readonly entrypoint?: readonly string[];
  readonly command?: readonly string[];
  /** `NAME=value`. */
  readonly environment?: readonly string[];
  readonly workingDirectory?: string;
}

const mediaTypes = {
  index: "application/vnd.oci.image.index.v1+json",
  manifest: "application/vnd.oci.image.manifest.v1+json",
  config: "application/vnd.oci.image.config.v1+json",
  layer: "application/vnd.oci.image.layer.v1.tar",
} as const;

/**
 * The image as a tar of an OCI image layout, ready for `ctr images import`. Equal input gives equal bytes and digests.
 * (https://github.com/opencontainers/image-spec/blob/main/image-layout.md)
 */
export function ociArchive(image: OciImage, hashing: Hashing): Uint8Array {
  const blobs = new Map<string, Uint8Array>();
  const add = (mediaType: string, data: Uint8Array): { mediaType: string; digest: string; size: number } => {
    const digest = hashing.sha256(data);
    blobs.set(digest, data);
    return { mediaType, digest: `sha256:${digest}`, size: data.length };
  };
  const layer = add(mediaTypes.layer, tar(image.files));
  const config = add(
    mediaTypes.config,
    json({
      architecture: image.architecture,
      os: "linux",
      created: "1970-01-01T00:00:00Z",
      config: {
        Env: image.environment,
        Entrypoint: image.entrypoint,
        Cmd: image.command,
        WorkingDir: image.workingDirectory,
      },
      rootfs: { type: "layers", diff_ids: [layer.digest] },
      history: [{ created: "1970-01-01T00:00:00Z", created_by: "podwright" }],
    }),
  );
  const manifest = add(
    mediaTypes.manifest,
    json({ schemaVersion: 2, mediaType: mediaTypes.manifest, config, layers: [layer] }),
  );
  const index = {
    schemaVersion: 2,
    mediaType: mediaTypes.index,
    manifests: [{ ...manifest, annotations: { "io.containerd.image.name": image.reference } }],
  };
  return tar([
    { path: "oci-layout", type: "file", mode: 0o644, data: json({ imageLayoutVersion: "1.0.0" }) },
    { path: "index.json", type: "file", mode: 0o644, data: json(index) },
    { path: "blobs", type: "directory", mode: 0o755 },
    { path: "blobs/sha256", type: "directory", mode: 0o755 },
    ...[...blobs].map(([digest, data]): TarEntry => ({
      path: `blobs/sha256/${digest}`,
      type: "file",
      mode: 0o644,
      data,
    })),
  ]);
}

function json(value: unknown): Uint8Array {
  return Buffer.from(JSON.stringify(value));
}
