/** Where the kubelet has the drivers' staged volumes. */
export const stagedDirectory = "/var/lib/kubelet/plugins/kubernetes.io/csi";
/** Block volumes have their own place beside those of the drivers. */
export const devicesName = "volumeDevices";
export const devicesDirectory = `${stagedDirectory}/${devicesName}/`;

/** The data file of what is mounted at a staging path, or at a target. */
export function recordOf(target: string): string {
  if (!target.startsWith(devicesDirectory)) return `${target.slice(0, target.lastIndexOf("/"))}/vol_data.json`;
  const name = target.slice(devicesDirectory.length).split("/")[1] ?? "";
  return `${devicesDirectory}${name}/data/vol_data.json`;
}
