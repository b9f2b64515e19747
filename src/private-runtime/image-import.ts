import { ExitCode, PodwrightError } from "../base/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Cri } from "../ports/cri.ts";
import type { Files } from "../ports/files.ts";
import type { Hashing } from "../ports/hashing.ts";
import type { Processes } from "../ports/processes.ts";
import { DEMO_IMAGE, PAUSE_IMAGE, demoImage, pauseImage } from "./built-in-images.ts";
import { ELF_HEAD_BYTES, parseElf } from "./elf.ts";
import type { RuntimeLayout } from "./layout.ts";
import { ociArchive } from "./oci-image.ts";
import type { OciImage } from "./oci-image.ts";
import type { Programs } from "./programs.ts";

export interface ImageImportDeps {
  readonly clock: Clock;
  readonly files: Files;
  readonly hashing: Hashing;
  readonly processes: Processes;
}

const MAX_PROGRAM_BYTES = 32 * 1024 * 1024;
const CALL_TIMEOUT_MS = 10_000;
const IMPORT_TIMEOUT_MS = 60_000;
const VISIBLE_LIMIT_MS = 10_000;
const POLL_MS = 20;

/** Imports the pause and the demo image into the private runtime, those that it does not have yet. */
export async function importBuiltInImages(
  deps: ImageImportDeps,
  layout: RuntimeLayout,
  programs: Programs,
  cri: Cri,
  signal?: AbortSignal,
): Promise<void> {
  const target = { layout, programs, cri };
  if (!(await isPresent(cri, PAUSE_IMAGE, signal))) {
    const catatonit = await deps.files.read(programs.catatonit, MAX_PROGRAM_BYTES);
    await importImage(deps, target, pauseImage(catatonit, architectureOf(catatonit, programs.catatonit)), signal);
  }
  if (!(await isPresent(cri, DEMO_IMAGE, signal))) {
    const busybox = await deps.files.read(programs.busybox, MAX_PROGRAM_BYTES);
    const list = await deps.processes.run(programs.busybox, ["--list"], {
      timeoutMs: CALL_TIMEOUT_MS,
      ...(signal && { signal }),
    });
    const applets = list.stdout.split("\n").filter((applet) => /^[\w.[\]-]+$/.test(applet));
    await importImage(deps, target, demoImage(busybox, applets, architectureOf(busybox, programs.busybox)), signal);
  }
}

/** The runtime into which images are imported. */
interface Target {
  readonly layout: RuntimeLayout;
  readonly programs: Programs;
  readonly cri: Cri;
}

async function importImage(
  { clock, files, hashing, processes }: ImageImportDeps,
  { layout, programs, cri }: Target,
  image: OciImage,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { imports, socket } = layout.containerd;
  const archive = `${imports}/${hashing.sha256(image.reference).slice(0, 16)}.tar`;
  const ctr = async (...words: string[]): Promise<void> => {
    const result = await processes.run(
      programs.ctr,
      ["--address", socket, "--namespace", "k8s.io", "images", ...words],
      {
        timeoutMs: IMPORT_TIMEOUT_MS,
        ...(signal && { signal }),
      },
    );
    if (result.exitCode === 0) return;
    const message = `cannot import ${image.reference} into ${socket}: ${result.stderr.trim() || `ctr ended with ${result.exitCode ?? result.signal}`}`;
    throw new PodwrightError(ExitCode.environment, message, { remedy: `see ${layout.containerd.log}` });
  };
  await files.makeDirectory(imports, 0o700);
  try {
    await files.writeAtomic(archive, ociArchive(image, hashing), 0o600);
    await ctr("import", archive);
  } finally {
    await files.remove(archive);
  }
  // Keeps image garbage collectors off; containerd 1.6 ignores it.
  if (image.reference === PAUSE_IMAGE) await ctr("label", image.reference, "io.cri-containerd.pinned=pinned");
  // CRI learns of the import by an event.
  const limit = clock.monotonic() + VISIBLE_LIMIT_MS;
  while (!(await isPresent(cri, image.reference, signal))) {
    if (clock.monotonic() >= limit) {
      throw new PodwrightError(ExitCode.environment, `containerd does not show ${image.reference} after its import`, {
        remedy: `see ${layout.containerd.log}`,
      });
    }
    await clock.sleep(`image ${image.reference} to appear`, POLL_MS, signal);
  }
}

async function isPresent(cri: Cri, reference: string, signal: AbortSignal | undefined): Promise<boolean> {
  const options = { timeoutMs: CALL_TIMEOUT_MS, ...(signal && { signal }) };
  const { image } = await cri.images.imageStatus({ image: { image: reference } }, options);
  return image !== undefined;
}

function architectureOf(program: Uint8Array, path: string): string {
  const architecture = parseElf(program.subarray(0, ELF_HEAD_BYTES))?.architecture;
  if (architecture === undefined) {
    throw new PodwrightError(ExitCode.environment, `${path} is not an executable that an image can be built from`, {
      remedy: "install a statically linked one",
    });
  }
  return architecture;
}
