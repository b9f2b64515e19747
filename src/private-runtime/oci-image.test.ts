import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { systemHashing } from "../linux/files/hashing.ts";
import { DEMO_IMAGE, demoImage, pauseImage } from "./built-in-images.ts";
import { ociArchive } from "./oci-image.ts";

const extract = (archive: Uint8Array, path: string): Buffer =>
  execFileSync("tar", ["-xO", "-f", "-", path], { input: archive, maxBuffer: 1 << 26 });

/** A member of an archive as JSON. */
const document = (archive: Uint8Array, path: string): Record<string, unknown> =>
  JSON.parse(extract(archive, path).toString("utf8"));

interface Descriptor {
  readonly digest: string;
  readonly size: number;
}
const blobPath = ({ digest }: Descriptor): string => `blobs/${digest.replace(":", "/")}`;

test("every blob of the layout has the size and digest in its descriptor", () => {
  const archive = ociArchive(demoImage(Buffer.from("program"), ["sh", "ls"], "amd64"), systemHashing);
  const [manifest] = document(archive, "index.json")["manifests"] as [Descriptor & { annotations: object }];
  assert.deepEqual(manifest.annotations, { "io.containerd.image.name": DEMO_IMAGE });
  const { config, layers } = document(archive, blobPath(manifest)) as unknown as {
    config: Descriptor;
    layers: Descriptor[];
  };
  for (const descriptor of [manifest, config, ...layers]) {
    const blob = extract(archive, blobPath(descriptor));
    assert.equal(`sha256:${systemHashing.sha256(blob)}`, descriptor.digest);
    assert.equal(blob.length, descriptor.size);
  }
  const { rootfs } = document(archive, blobPath(config)) as { rootfs: { diff_ids: string[] } };
  assert.deepEqual(
    rootfs.diff_ids,
    layers.map((layer) => layer.digest),
  );
});

test("the demo image has a link for each applet and a /tmp for all users", () => {
  const archive = ociArchive(demoImage(Buffer.from("program"), ["sh", "busybox", "ls"], "amd64"), systemHashing);
  const [manifest] = document(archive, "index.json")["manifests"] as [Descriptor];
  const { layers } = document(archive, blobPath(manifest)) as unknown as { layers: [Descriptor] };
  const listing = execFileSync("tar", ["-tv", "-f", "-"], {
    input: extract(archive, blobPath(layers[0])),
    encoding: "utf8",
  });
  assert.match(listing, /bin\/ls -> busybox\n.*bin\/sh -> busybox\n/);
  assert.match(listing, /^drwxrwxrwt .* tmp\/$/m);
});

test("equal programs give equal archives, whatever the order of the applets", () => {
  const archive = (applets: string[]): Uint8Array =>
    ociArchive(demoImage(Buffer.from("p"), applets, "amd64"), systemHashing);
  assert.deepEqual(archive(["sh", "ls"]), archive(["ls", "sh"]));
});

test("the pause image runs its program as an init", () => {
  const archive = ociArchive(pauseImage(Buffer.from("program"), "arm64"), systemHashing);
  const [manifest] = document(archive, "index.json")["manifests"] as [Descriptor];
  const { config } = document(archive, blobPath(manifest)) as unknown as { config: Descriptor };
  const { architecture, config: run } = document(archive, blobPath(config)) as {
    architecture: string;
    config: unknown;
  };
  assert.equal(architecture, "arm64");
  assert.deepEqual(run, { Entrypoint: ["/catatonit", "-P"], WorkingDir: "/" });
});
