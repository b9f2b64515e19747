import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { connectCri } from "../../src/cri/client.ts";
import { ImageCollector } from "../../src/images/image-collector.ts";
import { ImageFileSystem } from "../../src/images/image-file-system.ts";
import { ImageLeases } from "../../src/images/image-leases.ts";
import { ImageUses } from "../../src/images/image-uses.ts";
import type { JournalInput } from "../../src/journal/entry.ts";
import { systemFiles } from "../../src/linux/files/files.ts";
import { systemHashing } from "../../src/linux/files/hashing.ts";
import { openStatsFiles } from "../../src/linux/files/stats-files.ts";
import { systemClock } from "../../src/linux/processes/clock.ts";
import { systemProcesses } from "../../src/linux/processes/processes.ts";
import { needsRoot } from "../../src/linux/processes/testing.ts";
import type { Cri } from "../../src/ports/cri.ts";
import { ensurePrivateRuntime } from "../../src/private-runtime/containerd.ts";
import { runtimeLayout } from "../../src/private-runtime/layout.ts";
import { preflight, requireReady } from "../../src/private-runtime/preflight/preflight.ts";
import { stopPrivateRuntime } from "../../src/private-runtime/stop.ts";
import { machine } from "../support/machine.ts";
import { patience } from "../support/patience.ts";
import { Registry } from "../support/registry.ts";
import { removeDirectories } from "../support/traces.ts";
import { silentLog } from "../support/sources.ts";

const needs = ["/usr/bin/docker-registry", "/usr/sbin/mkfs.ext4"].find((program) => !existsSync(program));
const skip = needsRoot() || (needs === undefined ? false : `${needs} is not installed`);
const cleanUps = new AsyncDisposableStack();
const signal = new AbortController().signal;
/** Each takes about twice as much: as it came, and unpacked. */
const imageBytes = 4 << 20;
const [highThresholdPercent, lowThresholdPercent] = [70, 40];

after(() => cleanUps.disposeAsync());

async function run(program: string, ...given: readonly string[]): Promise<void> {
  const { exitCode, stderr } = await systemProcesses.run(program, given, { timeoutMs: 30_000 * patience });
  assert.equal(exitCode, 0, `${program} ${given.join(" ")}: ${stderr}`);
}

/** A containerd whose images lie on a file system of their own of 256 MiB. */
async function smallRuntime(): Promise<{ readonly cri: Cri; readonly directory: string }> {
  const directory = await mkdtemp(join(tmpdir(), "podwright-image-gc-"));
  const layout = runtimeLayout(directory, systemHashing);
  cleanUps.defer(() => removeDirectories(layout));
  const { root } = layout.containerd;
  await mkdir(root, { recursive: true, mode: 0o711 });
  const disk = join(directory, "disk");
  await run("/usr/bin/truncate", "--size", "256M", disk);
  await run("/usr/sbin/mkfs.ext4", "-q", "-m", "0", disk);
  await run("/usr/bin/mount", "-o", "loop", disk, root);
  cleanUps.defer(() => run("/usr/bin/umount", "--lazy", root));
  const facts = requireReady(await preflight({ ...machine, layout, searchPath: [] }));
  cleanUps.defer(async () => void (await stopPrivateRuntime(machine, layout, facts.programs)));
  const { endpoint } = await ensurePrivateRuntime(machine, layout, facts);
  return { cri: cleanUps.use(connectCri(endpoint, systemClock)), directory };
}

test(
  "images of a real registry are removed from a full disk until it has space, except those in use or needed by pods",
  { skip },
  async () => {
    const registry = cleanUps.use(await Registry.start());
    const { cri, directory } = await smallRuntime();
    const entries: JournalInput[] = [];
    const statsFiles = await openStatsFiles(systemClock);
    const fileSystem = new ImageFileSystem({ clock: systemClock, images: cri.images, disk: statsFiles });
    const mountPoint = await fileSystem.mountPoint(signal);
    const usedPercent = async (): Promise<number> => {
      const { capacityBytes, availableBytes } = await fileSystem.room(mountPoint);
      return 100 - (availableBytes * 100) / capacityBytes;
    };
    const leases = new ImageLeases();
    const usesFile = join(directory, "image-uses.json");
    const collector = new ImageCollector(
      {
        ...{ clock: systemClock, journal: { record: (entry) => entries.push(entry) }, log: silentLog },
        ...{ images: cri.images, runtime: cri.runtime, fileSystem },
        uses: new ImageUses({ clock: systemClock, files: systemFiles, log: silentLog }, usesFile),
        labels: { namespace: "io.kubernetes.pod.namespace", pod: "io.kubernetes.pod.name" },
      },
      { highThresholdPercent, lowThresholdPercent, minAgeMs: 0, maxAgeMs: 0, onlyPulled: false },
    );
    const wanted: { pod: string; names: string[] }[] = [];
    const access = { isPulled: async () => true, prune: async () => true };
    collector.connect({ leases, access, ready: () => true, wanted: () => wanted, mayMount: () => [] });

    const images: { readonly name: string; readonly id: string }[] = [];
    for (let index = 0; index < 20; index++) {
      const name = await registry.push(`team/app${index}`, "1", randomBytes(imageBytes));
      await cri.images.pullImage({ image: { image: name } }, { signal });
      const { image } = await cri.images.imageStatus({ image: { image: name } }, { signal });
      images.push({ name, id: image?.id ?? "" });
      await collector.preview(signal);
    }
    const full = await usedPercent();
    assert.ok(full >= highThresholdPercent, `${full}% full`);

    const [held, wants] = images;
    using lease = leases.take();
    assert.equal(await lease.settle(held?.id ?? ""), true);
    wanted.push({ pod: "default/shop", names: [wants?.name ?? ""] });
    await collector.collect(signal);

    const left = new Set((await cri.images.listImages({}, { signal })).images.map(({ id }) => id));
    const gone = images.map(({ id }, index) => (left.has(id) ? -1 : index)).filter((index) => index >= 0);
    assert.deepEqual(
      gone,
      gone.map((_, place) => place + 2),
      "those that were seen first, but for the two",
    );
    assert.ok(gone.length > 3 && gone.length < 18, `${gone.length} went`);
    assert.ok((await usedPercent()) <= lowThresholdPercent, `${await usedPercent()}% full`);
    const summary = entries.find(({ what }) => what === "ImagesCollected")?.message ?? "";
    assert.match(summary, /^removed \d+ images, \d+\.\d MiB freed/u);
    assert.match(summary, /1 pinned/u);
    assert.match(summary, /1 needed by pods/u);
    assert.match(summary, /1 about to be used/u);

    const freed = await collector.removeUnused({ code: "GarbageRequested", message: "asked" }, signal);
    assert.equal(
      freed.removed.filter(({ names }) => names.some((name) => name.includes("team/app"))).length,
      18 - gone.length,
    );
    assert.ok(freed.freedBytes > imageBytes, `${freed.freedBytes} bytes freed`);
  },
);
