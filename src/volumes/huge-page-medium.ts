import type { Pod } from "../api/pod.ts";
import type { MountPoint } from "../ports/mounts.ts";
import { pageSizeOf } from "../resources/huge-pages.ts";
import { quantityOf, readQuantity } from "../resources/quantity.ts";
import { VolumeError } from "../runtime/volume-error.ts";

const anySize = "HugePages";
const ofSize = `${anySize}-`;
const fileSystem = "hugetlbfs";

/** Whether an emptyDir's medium is huge pages: `HugePages`, `HugePages-2Mi`. */
export function isHugePageMedium(medium: string): boolean {
  return medium === anySize || medium.startsWith(ofSize);
}

/**
 * The mount of a volume on huge pages, without its target: of the size that the medium names, or of the only one that the
 * pod requests. As upstream, the mount has no limit: the pod's cgroup has. Pure.
 * @throws VolumeError in upstream's words
 */
export function hugePageMount(medium: string, pod: Pod): Omit<MountPoint, "target"> {
  const named = namedSize(medium);
  const requested = requestedSizes(pod);
  if (named === undefined && requested.size > 1) {
    throw new VolumeError(`medium: ${medium} can't be used if container requests multiple huge page sizes`);
  }
  const size = [...requested].find((each) => named === undefined || each === named);
  if (size === undefined) {
    const problem = "hugePages storage requested, but there is no resource request for huge pages";
    throw new VolumeError(`medium ${medium}: ${problem}`);
  }
  return { source: "nodev", fileSystem, options: [`pagesize=${textOf(size)}`] };
}

/**
 * Whether a mount is that of a volume on huge pages. Pure.
 * @throws VolumeError in upstream's words if it has other huge pages
 */
export function isHugePageMount(mount: MountPoint, medium: string, pod: Pod): boolean {
  if (mount.fileSystem !== fileSystem) return false;
  const named = namedSize(medium);
  if (named === undefined) return true;
  const mounted = mountedSize(mount);
  if (mounted === undefined) throw new VolumeError(`no pagesize option specified for ${mount.target} mount`);
  if (mounted === named) return true;
  const sizes = `pagesize '${textOf(mounted)}' and requested medium size '${textOf(named)}' differ`;
  throw new VolumeError(`pod ${pod.metadata.uid}: mounted dir ${mount.target} ${sizes}`);
}

/** Undefined: the medium names none. */
function namedSize(medium: string): bigint | undefined {
  if (medium === anySize) return undefined;
  const size = readQuantity(medium.slice(ofSize.length));
  if (size !== undefined) return size.value();
  const form = "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
  throw new VolumeError(`quantities must match the regular expression ${form}`);
}

/** Of the pod and all of its containers. Limits need no look: they equal requests. */
function requestedSizes({ spec }: Pod): ReadonlySet<bigint> {
  const lists = [spec, ...spec.containers, ...(spec.initContainers ?? [])].map(({ resources }) => resources?.requests);
  const names = lists.flatMap((requests) => Object.keys(requests ?? {}));
  return new Set(names.flatMap((name) => pageSizeOf(name) ?? []));
}

/** The kernel shows `pagesize=2M`. */
function mountedSize({ options }: MountPoint): bigint | undefined {
  const [, size] = options.map((option) => /^pagesize=(\w+?)i?$/u.exec(option)).find((match) => match !== null) ?? [];
  return size === undefined ? undefined : readQuantity(`${size}i`)?.value();
}

function textOf(size: bigint): string {
  return quantityOf(size, "BinarySI").toString();
}
