import { goJson } from "../base/go-json.ts";
import { FileError, type Files } from "../ports/files.ts";

/** The data file of a volume: it suffices to tear the volume down, whatever its pod's spec is by then. */
export interface VolumeData {
  readonly driverName: string;
  readonly volumeHandle: string;
  readonly attachmentId?: string | undefined;
  readonly nodeName?: string | undefined;
  /** The name of its directory in its pods: the PV's, or the pod volume's. */
  readonly specVolumeId?: string | undefined;
  /** The SELinux label that it is mounted with. */
  readonly seLinuxLabel?: string | undefined;
  readonly lifecycleMode?: "Persistent" | "Ephemeral" | undefined;
}

export const dataFileName = "vol_data.json";
/** Upstream's files have a few hundred bytes. */
const maxBytes = 64 * 1024;
/** It is not there, is no such file, or the disk or its file system is damaged. */
const noFile: ReadonlySet<string> = new Set("ENOENT ENOTDIR EFBIG EINVAL EISDIR EIO EUCLEAN EBADMSG".split(" "));

/** Equal to upstream's, byte for byte. */
export function volumeDataText(data: VolumeData): string {
  const { attachmentId: attachmentID, driverName, nodeName, specVolumeId: specVolID, volumeHandle } = data;
  const fields = {
    attachmentID,
    driverName,
    nodeName,
    seLinuxMountContext: data.seLinuxLabel,
    specVolID,
    volumeHandle,
    volumeLifecycleMode: data.lifecycleMode,
  };
  const present = Object.entries(fields).filter((pair): pair is [string, string] => pair[1] !== undefined);
  return `${goJson(Object.fromEntries(present))}\n`;
}

/** @returns undefined for an invalid file */
export function parseVolumeData(text: string): VolumeData | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== "object" || value === null) return undefined;
  const field = (name: string): string | undefined => {
    const found: unknown = Reflect.get(value, name);
    return typeof found === "string" && found !== "" ? found : undefined;
  };
  const [driverName, volumeHandle, mode] = [field("driverName"), field("volumeHandle"), field("volumeLifecycleMode")];
  if (driverName === undefined || volumeHandle === undefined) return undefined;
  return {
    driverName,
    volumeHandle,
    attachmentId: field("attachmentID"),
    nodeName: field("nodeName"),
    specVolumeId: field("specVolID"),
    seLinuxLabel: field("seLinuxMountContext"),
    lifecycleMode: mode === "Ephemeral" || mode === "Persistent" ? mode : undefined,
  };
}

export async function saveVolumeData(
  files: Pick<Files, "writeAtomic">,
  directory: string,
  data: VolumeData,
): Promise<void> {
  await files.writeAtomic(`${directory}/${dataFileName}`, volumeDataText(data), 0o644);
}

/** @returns undefined if the file is missing, invalid or cannot be read any more */
export async function loadVolumeData(files: Pick<Files, "read">, directory: string): Promise<VolumeData | undefined> {
  try {
    const bytes = await files.read(`${directory}/${dataFileName}`, maxBytes);
    return parseVolumeData(new TextDecoder().decode(bytes));
  } catch (error) {
    if (error instanceof FileError && noFile.has(error.code)) return undefined;
    throw error;
  }
}
