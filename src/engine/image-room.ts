import { allContainers } from "../api/all-containers.ts";
import type { Pod } from "../api/pod.ts";
import { ImageCollector, type ImageCollectorConfig } from "../images/image-collector.ts";
import { ImageFileSystem } from "../images/image-file-system.ts";
import { ImageUses } from "../images/image-uses.ts";
import type { WantedImages } from "../images/known-images.ts";
import type { Recorder } from "../journal/entry.ts";
import type { KnownPods } from "../kubelet/known-pods.ts";
import type { Room, RoomServices } from "../kubelet/room.ts";
import type { Clock } from "../ports/clock.ts";
import type { Cri } from "../ports/cri.ts";
import type { Container } from "../ports/gen/runtime/v1/api_pb.js";
import type { Files } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";
import type { StatsFiles } from "../ports/stats-files.ts";
import { Label } from "../runtime/config/labels.ts";

export interface ImageRoomParts {
  readonly clock: Clock;
  readonly files: Files;
  readonly disk: Pick<StatsFiles, "fileSystem">;
  /** With deadlines. */
  readonly cri: Cri;
  readonly journal: Recorder;
  readonly log: Logger;
}

/** Collects the images of a node: what the kubelet knows of its pods keeps theirs. */
export class ImageRoom implements Room {
  readonly collector: ImageCollector;

  /** @param rootDirectory `/var/lib/kubelet` */
  constructor(parts: ImageRoomParts, config: ImageCollectorConfig, rootDirectory: string) {
    const { clock, files, disk, cri, journal } = parts;
    const log = parts.log.child({ component: "images" });
    this.collector = new ImageCollector(
      {
        clock,
        journal,
        log,
        images: cri.images,
        runtime: cri.runtime,
        fileSystem: new ImageFileSystem({ clock, images: cri.images, disk }),
        uses: new ImageUses({ clock, files, log }, `${rootDirectory}/podwright/image-uses.json`),
        labels: { namespace: Label.podNamespace, pod: Label.podName },
      },
      config,
    );
  }

  connect({ images, pods, ready }: RoomServices): void {
    const wanted = (): WantedImages[] =>
      pods
        .list()
        .flatMap(({ view }) => (view.pod === undefined || view.state.kind !== "syncing" ? [] : [of(view.pod)]));
    this.collector.connect({ ...images, ready, wanted, mayMount: mayMount.bind(undefined, pods) });
  }

  async load(): Promise<void> {
    await this.collector.load();
  }

  async run(signal: AbortSignal): Promise<void> {
    await this.collector.run(signal);
  }

  async close(): Promise<void> {
    await this.collector.close();
  }
}

function of({ metadata, spec }: Pod): WantedImages {
  const containers = allContainers(spec).map(({ image = "" }) => image);
  const volumes = (spec.volumes ?? []).map(({ image }) => image?.reference ?? "");
  return {
    pod: `${metadata.namespace}/${metadata.name}`,
    names: [...containers, ...volumes].filter((name) => name !== ""),
  };
}

/** Those of a pod whose spec has image volumes, or is not known, as that of an orphan. */
function mayMount(pods: Pick<KnownPods, "list">, containers: readonly Container[]): readonly Container[] {
  const mountsNone = new Set<string | undefined>();
  for (const { view } of pods.list()) {
    if (view.pod?.spec.volumes?.some(({ image }) => image !== undefined) === true) continue;
    if (view.pod !== undefined) mountsNone.add(view.ref.uid);
  }
  return containers.filter(({ labels }) => !mountsNone.has(labels[Label.podUid]));
}
