import type { OciImage } from "./oci-image.ts";
import type { TarEntry } from "./tar.ts";

/** What every sandbox runs; imported into the private runtime, never pulled. */
export const PAUSE_IMAGE = "podwright.local/pause:1";
/** A shell and its tools, for examples and tests; imported into the private runtime, never pulled. */
export const DEMO_IMAGE = "podwright.local/demo:1";

/**
 * The pause image: a static init that reaps and waits for SIGTERM.
 * @param catatonit the statically linked program
 */
export function pauseImage(catatonit: Uint8Array, architecture: string): OciImage {
  return {
    reference: PAUSE_IMAGE,
    architecture,
    files: [{ path: "catatonit", type: "file", mode: 0o755, data: catatonit }],
    entrypoint: ["/catatonit", "-P"],
    workingDirectory: "/",
  };
}

/**
 * The demo image: busybox with a link for each of its applets.
 * @param busybox the statically linked program
 * @param applets as `busybox --list` gives them
 */
export function demoImage(busybox: Uint8Array, applets: readonly string[], architecture: string): OciImage {
  const directory = (path: string, mode = 0o755): TarEntry => ({ path, type: "directory", mode });
  const file = (path: string, text: string): TarEntry => ({ path, type: "file", mode: 0o644, data: Buffer.from(text) });
  // Sorted, so that equal programs give equal images.
  const links = applets.filter((applet) => applet !== "busybox").toSorted();
  return {
    reference: DEMO_IMAGE,
    architecture,
    files: [
      directory("bin"),
      { path: "bin/busybox", type: "file", mode: 0o755, data: busybox },
      ...links.map((applet): TarEntry => ({ path: `bin/${applet}`, type: "symlink", mode: 0o777, target: "busybox" })),
      directory("etc"),
      file("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"),
      file("etc/group", "root:x:0:\nnogroup:x:65534:\n"),
      directory("root", 0o700),
      directory("tmp", 0o1777),
      directory("var"),
      directory("var/www"),
    ],
    environment: ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
    command: ["sh"],
    workingDirectory: "/",
  };
}
