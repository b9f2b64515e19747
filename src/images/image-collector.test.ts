import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { ManualClock, settle } from "../../test/support/manual-clock.ts";
import { silentLog } from "../../test/support/sources.ts";
import type { JournalInput } from "../journal/entry.ts";
import { CriError } from "../ports/cri.ts";
import * as pb from "../ports/gen/runtime/v1/api_pb.js";
import { MemoryFiles } from "../sim/files.ts";
import { ImageCollector, type ImageCollectorConfig, type ImageServices } from "./image-collector.ts";
import { ImageFileSystem } from "./image-file-system.ts";
import { ImageLeases } from "./image-leases.ts";
import { ImageUses } from "./image-uses.ts";
import type { WantedImages } from "./known-images.ts";

const signal = new AbortController().signal;
const minute = 60_000;
const usual: ImageCollectorConfig = {
  ...{ highThresholdPercent: 85, lowThresholdPercent: 80, minAgeMs: 0, maxAgeMs: 0 },
  onlyPulled: false,
};

interface FakeImage {
  readonly size: number;
  readonly pinned?: boolean;
  /** Bytes that its removal frees; default: its size. */
  readonly frees?: number;
}

/** A runtime with images on a file system of 1000 bytes. */
class Scene {
  readonly clock = new ManualClock();
  readonly files = new MemoryFiles(this.clock);
  readonly leases = new ImageLeases();
  readonly entries: JournalInput[] = [];
  readonly removed: string[] = [];
  readonly pruned: string[][] = [];
  canPrune = true;
  /** Lists of images that succeed before all others fail. */
  listsLeft = Number.POSITIVE_INFINITY;
  readonly images = new Map<string, FakeImage>();
  /** Names of images that have containers. */
  readonly used = new Set<string>();
  readonly pulled = new Set<string>();
  /** Names of images that a container called `host` has as volumes. */
  readonly mounted = new Set<string>();
  wanted: WantedImages[] = [];
  ready = true;
  otherBytes = 0;
  capacityBytes = 1000;
  onRemove: (name: string) => void = () => {};
  readonly collector: ImageCollector;

  constructor(config: Partial<ImageCollectorConfig> = {}) {
    const { clock, files } = this;
    const imageFsInfo = async () => {
      const imageFilesystems = [create(pb.FilesystemUsageSchema, { fsId: { mountpoint: "/images" } })];
      return create(pb.ImageFsInfoResponseSchema, { imageFilesystems });
    };
    const disk = { fileSystem: async () => this.#room() };
    this.collector = new ImageCollector(
      {
        clock,
        journal: { record: (entry) => this.entries.push(entry) },
        log: silentLog,
        images: {
          listImages: async () => {
            if (this.listsLeft-- <= 0) throw new CriError("Unavailable", "ListImages", "down");
            return create(pb.ListImagesResponseSchema, { images: this.#list() });
          },
          imageStatus: async ({ image }) => {
            const found = this.#list().find(({ id }) => id === image?.image);
            return create(pb.ImageStatusResponseSchema, found && { image: found });
          },
          removeImage: async ({ image }) => {
            const name = (image?.image ?? "").slice("sha256:".length);
            this.onRemove(name);
            this.#freed +=
              (this.images.get(name)?.size ?? 0) - (this.images.get(name)?.frees ?? this.images.get(name)?.size ?? 0);
            this.images.delete(name);
            this.removed.push(name);
            return create(pb.RemoveImageResponseSchema);
          },
        },
        runtime: {
          status: async () =>
            create(pb.StatusResponseSchema, { info: { config: JSON.stringify({ sandboxImage: "pause:1" }) } }),
          listContainers: async () => {
            const containers = [...this.used].map((name) => ({
              id: name,
              imageId: `sha256:${name}`,
              metadata: { name },
            }));
            return create(pb.ListContainersResponseSchema, { containers });
          },
          containerStatus: async () => {
            const mounts = [...this.mounted].map((name) => ({ image: { image: `sha256:${name}` } }));
            return create(pb.ContainerStatusResponseSchema, { status: { mounts } });
          },
        },
        fileSystem: new ImageFileSystem({ clock, images: { imageFsInfo }, disk }),
        uses: new ImageUses({ clock, files, log: silentLog }, "/kubelet/podwright/image-uses.json"),
        labels: { namespace: "ns", pod: "pod" },
      },
      { ...usual, ...config },
    );
    this.collector.connect(this.#services());
  }

  /** Bytes freed on the disk. */
  #freed = 0;

  #services(): ImageServices {
    return {
      leases: this.leases,
      access: {
        isPulled: async ({ id }) => this.pulled.has(id),
        prune: async (present) => {
          if (this.canPrune) this.pruned.push(present.map(({ id }) => id));
          return this.canPrune;
        },
      },
      ready: () => this.ready,
      wanted: () => this.wanted,
      mayMount: (containers) => containers.filter(({ id }) => id === "host"),
    };
  }

  #list(): pb.Image[] {
    return [...this.images].map(([name, { size, pinned = false }]) => {
      const repoTags = [`docker.io/library/${name}:1`];
      return create(pb.ImageSchema, { id: `sha256:${name}`, repoTags, size: BigInt(size), pinned });
    });
  }

  #room() {
    const images = [...this.images.values()].reduce((sum, { size }) => sum + size, 0);
    const usedBytes = Math.min(this.capacityBytes, images + this.otherBytes + this.#freed);
    const availableBytes = this.capacityBytes - usedBytes;
    return { capacityBytes: this.capacityBytes, availableBytes, usedBytes, inodes: 0, inodesFree: 0 };
  }

  /** Adds images, seen one after the other. */
  async seen(...images: readonly (readonly [name: string, image: FakeImage])[]): Promise<void> {
    for (const [name, image] of images) {
      this.images.set(name, image);
      await this.collector.preview(signal);
      await this.clock.advance(1);
    }
  }

  told(...what: readonly string[]): string[] {
    return this.entries
      .filter((entry) => what.includes(entry.what) && entry.kind !== "action")
      .map(({ message }) => message);
  }
}

test("at the high threshold images are removed, longest unused first, down to the low threshold", async () => {
  const scene = new Scene();
  await scene.seen(["a", { size: 300 }], ["b", { size: 300 }], ["c", { size: 260 }]);
  await scene.collector.collect(signal);
  assert.deepEqual(scene.removed, ["a"]);
  assert.deepEqual(scene.told("ImagesCollected"), ["removed 1 images, 300 B freed"]);
  assert.deepEqual(scene.pruned.at(-1), ["sha256:b", "sha256:c"]);
  await scene.collector.collect(signal);
  assert.deepEqual(scene.removed, ["a"], "56 % are below the high threshold");
});

test("a removal that frees more than its size ends the collection earlier, one that frees less continues it", async () => {
  const more = new Scene();
  await more.seen(["a", { size: 10, frees: 110 }], ["b", { size: 400 }], ["c", { size: 390 }]);
  more.otherBytes = 100;
  await more.collector.collect(signal);
  assert.deepEqual(more.removed, ["a"]);

  const less = new Scene();
  await less.seen(["a", { size: 300, frees: 0 }], ["b", { size: 300 }], ["c", { size: 300 }]);
  const collected = less.collector.collect(signal);
  for (let looks = 0; looks < 12; looks++) await less.clock.advance(500);
  await collected;
  assert.deepEqual(less.removed, ["a", "b"]);
});

test("images in use, wanted, pinned or young stay, and a collection that frees too little reports it", async () => {
  const scene = new Scene({ minAgeMs: minute });
  await scene.seen(["used", { size: 200 }], ["wanted", { size: 200 }], ["pinned", { size: 200, pinned: true }]);
  await scene.seen(["pause", { size: 0 }], ["old", { size: 100 }]);
  await scene.clock.advance(minute);
  await scene.seen(["young", { size: 250 }]);
  scene.used.add("used");
  scene.wanted = [{ pod: "default/shop", names: ["wanted:1"] }];
  await assert.rejects(scene.collector.collect(signal), /Insufficient free disk space/u);
  assert.deepEqual(scene.removed, ["old"]);
  assert.deepEqual(scene.told("FreeDiskSpaceFailed"), [
    "Insufficient free disk space on the node's image filesystem (95% of 1000 B used). " +
      "Failed to free sufficient space by deleting unused images (freed 100 bytes). " +
      "Investigate disk usage, as it could be used by active images, logs, volumes, or other data. " +
      "Images that stay: 1 needed by pods, 2 pinned, 1 younger than imageMinimumGCAge, 1 in use.",
  ]);
});

test("an image that a start is about to use stays, also one requested during the collection", async () => {
  const scene = new Scene({ lowThresholdPercent: 10 });
  await scene.seen(["a", { size: 300 }], ["b", { size: 300 }], ["c", { size: 300 }]);
  using held = scene.leases.take();
  await held.settle("sha256:a");
  using late = scene.leases.take();
  scene.onRemove = () => void late.settle("sha256:c");
  scene.otherBytes = 100;
  await assert.rejects(scene.collector.collect(signal), /Insufficient/u);
  assert.deepEqual(scene.removed, ["b"]);
});

test("a failed or ineffective removal affects no other image and is reported", async () => {
  const scene = new Scene();
  await scene.seen(["fails", { size: 300 }], ["lies", { size: 300 }], ["c", { size: 300 }]);
  scene.onRemove = (name) => {
    if (name === "fails") throw new CriError("Unknown", "RemoveImage", "device or resource busy");
  };
  const lies = scene.images.get("lies");
  const remove = scene.images.delete.bind(scene.images);
  scene.images.delete = (name) => (name === "lies" && lies !== undefined ? true : remove(name));
  await scene.collector.collect(signal);
  assert.deepEqual([...scene.images.keys()], ["fails", "lies"]);
  assert.deepEqual(
    scene.told("RemoveImage").map((message) => message.replace(/^.*?: done$/u, "done")),
    ["device or resource busy", "the runtime reported the removal, but still has the image", "done"],
  );
});

test("a collection ends as soon as there is room, also if a removal failed while others made it", async () => {
  const scene = new Scene();
  await scene.seen(["fails", { size: 300 }], ["b", { size: 300 }]);
  scene.otherBytes = 400;
  scene.onRemove = () => {
    scene.otherBytes = 0;
    throw new CriError("Unknown", "RemoveImage", "device or resource busy");
  };
  await scene.collector.collect(signal);
  assert.deepEqual([...scene.images.keys()], ["fails", "b"]);
});

test("images unused for the maximum age are removed from a file system with room, once this run is as old", async () => {
  const scene = new Scene({ maxAgeMs: 60 * minute });
  scene.used.add("b");
  await scene.seen(["a", { size: 1 }], ["b", { size: 1 }]);
  await scene.clock.advance(60 * minute);
  await scene.collector.collect(signal);
  assert.deepEqual(scene.removed, ["a"]);
  const [action] = scene.entries.filter(({ what, kind }) => what === "RemoveImage" && kind === "action");
  assert.equal(action?.data?.["reason"], "age");
  assert.equal(action?.cause?.message, "not in use for 1h0m0s");
});

test("an image whose only use fell between two collections is not too old", async () => {
  const scene = new Scene({ maxAgeMs: 60 * minute });
  await scene.seen(["a", { size: 1 }], ["b", { size: 1 }]);
  await scene.clock.advance(58 * minute);
  {
    using lease = scene.leases.take();
    await lease.settle("sha256:a");
  }
  await scene.clock.advance(2 * minute);
  await scene.collector.collect(signal);
  assert.deepEqual(scene.removed, ["b"]);
});

test("with a high threshold of 100 and no maximum age nothing is removed, however full the disk", async () => {
  const scene = new Scene({ highThresholdPercent: 100 });
  await scene.seen(["a", { size: 1000 }]);
  await scene.collector.collect(signal);
  assert.deepEqual(scene.removed, []);
});

test("pull records of images that are gone are pruned once, also after a preview noticed it or a prune failed", async () => {
  const scene = new Scene();
  await scene.seen(["a", { size: 1 }], ["b", { size: 1 }], ["c", { size: 1 }], ["d", { size: 1 }]);
  const collects = async (): Promise<number> => {
    const before = scene.pruned.length;
    await scene.collector.collect(signal).catch(() => {});
    return scene.pruned.length - before;
  };
  assert.deepEqual([await collects(), await collects()], [1, 0], "an earlier run may not have");
  scene.images.delete("a");
  await scene.collector.preview(signal);
  assert.deepEqual([await collects(), await collects()], [1, 0]);
  scene.images.delete("b");
  scene.listsLeft = 1;
  assert.equal(await collects(), 0, "the second list of the collection fails");
  scene.listsLeft = Number.POSITIVE_INFINITY;
  assert.deepEqual([await collects(), await collects()], [1, 0]);
  scene.images.delete("c");
  scene.canPrune = false;
  assert.equal(await collects(), 0);
  scene.canPrune = true;
  assert.deepEqual([await collects(), await collects()], [1, 0]);
  assert.deepEqual(scene.pruned.at(-1), ["sha256:d"]);
});

test("a runtime that does not answer is reported, but not while collection is switched off", async () => {
  for (const [highThresholdPercent, maxAgeMs, told] of [
    [85, 0, 2],
    [100, 10 * minute, 2],
    [100, 0, 0],
  ] as const) {
    const scene = new Scene({ highThresholdPercent, maxAgeMs });
    scene.listsLeft = 0;
    const stop = new AbortController();
    const running = scene.collector.run(stop.signal);
    await scene.clock.advance(0);
    for (let times = 0; times < 2; times++) await scene.clock.advance(5 * minute);
    assert.equal(scene.told("ImageGCFailed").length, told, `${highThresholdPercent}% and ${maxAgeMs} ms`);
    stop.abort(new Error("the test is over"));
    await running;
  }
});

test("a file system without capacity is reported in upstream's words", async () => {
  const scene = new Scene();
  scene.capacityBytes = 0;
  await assert.rejects(scene.collector.collect(signal), /invalid capacity 0 on image filesystem/u);
  assert.deepEqual(scene.told("InvalidDiskCapacity"), ["invalid capacity 0 on image filesystem"]);
});

test("collection starts once all pods are known and repeats every five minutes; the second failure is reported", async () => {
  const scene = new Scene();
  await scene.seen(["a", { size: 900 }]);
  scene.ready = false;
  const stop = new AbortController();
  const running = scene.collector.run(stop.signal);
  await scene.clock.advance(10 * minute);
  assert.deepEqual(scene.removed, []);
  scene.ready = true;
  await scene.clock.advance(5000);
  assert.deepEqual(scene.removed, ["a"]);
  scene.otherBytes = 900;
  await scene.clock.advance(5 * minute);
  assert.deepEqual([scene.told("FreeDiskSpaceFailed").length, scene.told("ImageGCFailed").length], [1, 0]);
  await scene.clock.advance(5 * minute);
  assert.deepEqual([scene.told("FreeDiskSpaceFailed").length, scene.told("ImageGCFailed").length], [2, 1]);
  stop.abort(new Error("the test is over"));
  await running;
  await settle();
  assert.deepEqual(scene.clock.waits, []);
});

test("a manual collection removes all unused images, whatever the free space, and previews the same", async () => {
  const scene = new Scene({ onlyPulled: true });
  await scene.seen(["a", { size: 1 }], ["b", { size: 1 }], ["foreign", { size: 1 }], ["used", { size: 1 }]);
  await scene.seen(["volume", { size: 1 }]);
  for (const name of ["a", "b", "used", "volume"]) scene.pulled.add(`sha256:${name}`);
  for (const name of ["used", "host"]) scene.used.add(name);
  scene.mounted.add("volume");
  const { unused, held } = await scene.collector.preview(signal);
  assert.deepEqual(scene.removed, []);
  assert.deepEqual(
    unused.map(({ id }) => id),
    ["sha256:a", "sha256:b"],
  );
  assert.deepEqual(
    held.map(({ hold }) => hold.text),
    ["not pulled by podwright", "in use by container used", "in use by container host"],
  );
  const freed = await scene.collector.removeUnused({ code: "GarbageRequested", message: "asked" }, signal);
  assert.deepEqual([scene.removed, freed.freedBytes, freed.failures], [["a", "b"], 2, []]);
});

test("what work frees is measured when the runtime has deleted it, or after a while", async () => {
  const scene = new Scene();
  const freeing = async (bytes: number): Promise<number> => {
    scene.otherBytes = 300;
    const measured = scene.collector.measure(
      async () => "done",
      () => 100,
      signal,
    );
    await settle();
    scene.otherBytes -= bytes;
    await scene.clock.advance(6000);
    assert.equal((await measured).result, "done");
    return (await measured).freedBytes;
  };
  assert.equal(await freeing(120), 120);
  assert.equal(await freeing(40), 40);
  assert.equal(await freeing(-40), 0);
});

test("an image that is pulled again after its removal counts as new", async () => {
  const scene = new Scene({ minAgeMs: 2 * minute });
  await scene.seen(["again", { size: 10 }]);
  await scene.clock.advance(3 * minute);
  await scene.collector.removeUnused({ code: "GarbageRequested", message: "asked" }, signal);
  scene.images.set("again", { size: 10 });
  const { removed, held } = await scene.collector.removeUnused({ code: "GarbageRequested", message: "asked" }, signal);
  assert.deepEqual([removed, held.map(({ hold }) => hold.reason)], [[], ["tooYoung"]]);
});
