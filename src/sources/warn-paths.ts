import type { Volume } from "../api/volume.ts";
import { trimmedEnd } from "../base/trimmed.ts";
import type { FieldError } from "./field-errors.ts";
import { quote, type FieldPath } from "../yaml/manifest-error.ts";

/** A file of a volume, and what puts it there where several sources do. */
interface VolumeFile {
  readonly file: string;
  readonly source: string;
}

/** Files of one volume of which one is the other, or lies where the other is a directory. */
export function* overlappingPaths(volumes: readonly Volume[]): Iterable<FieldError> {
  for (const [index, volume] of volumes.entries()) {
    const path = ["spec", "volumes", index];
    const { name, configMap, secret, downwardAPI, projected } = volume;
    const show = (of: string): ((overlap: string) => string) => {
      return (overlap) => `volume ${quote(name)} (${of}): overlapping paths: ${overlap}`;
    };
    if (configMap) yield* overlaps(filesOf(configMap.items), path, show(`ConfigMap ${quote(configMap.name ?? "")}`));
    if (secret) yield* overlaps(filesOf(secret.items), path, show(`Secret ${quote(secret.secretName ?? "")}`));
    if (downwardAPI) yield* overlaps(filesOf(downwardAPI.items), path, show("DownwardAPI"));
    if (!projected) continue;
    for (const source of projected.sources ?? []) {
      if (Object.keys(source).length > 0) continue;
      yield { path, detail: `volume ${quote(name)} (Projected) has no sources provided` };
    }
    yield* overlaps((projected.sources ?? []).flatMap(projectedFiles), path, show("Projected"));
  }
}

type Projection = NonNullable<NonNullable<Volume["projected"]>["sources"]>[number];

function projectedFiles({ configMap, secret, downwardAPI, serviceAccountToken }: Projection): VolumeFile[] {
  if (configMap?.items) return filesOf(configMap.items, `ConfigMap ${quote(configMap.name ?? "")}`);
  if (secret?.items) return filesOf(secret.items, `Secret ${quote(secret.name ?? "")}`);
  if (downwardAPI?.items) return filesOf(downwardAPI.items, "DownwardAPI");
  return serviceAccountToken ? filesOf([serviceAccountToken], "ServiceAccountToken") : [];
}

function filesOf(items: readonly { readonly path: string }[] = [], source = ""): VolumeFile[] {
  return items.map(({ path }) => ({ file: trimmedEnd(path, "/"), source }));
}

function* overlaps(
  files: readonly VolumeFile[],
  path: FieldPath,
  show: (overlap: string) => string,
): Iterable<FieldError> {
  for (const [index, file] of files.entries()) {
    for (const other of files.slice(0, index)) {
      if (file.file === "" || other.file === "") continue;
      const isOverlap = `${file.file}/`.startsWith(`${other.file}/`) || `${other.file}/`.startsWith(`${file.file}/`);
      if (isOverlap) yield { path, detail: show(`${shown(file)} with ${shown(other)}`) };
    }
  }
}

function shown({ file, source }: VolumeFile): string {
  return source === "" ? quote(file) : `${quote(file)} (${source})`;
}
